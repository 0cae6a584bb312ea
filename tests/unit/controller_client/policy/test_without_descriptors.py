"""A process without descriptors says that it cannot look, and nothing about what is there."""

import subprocess
import sys

from tests.support.stack import PROJECT_ROOT

_LOOKS = """
import os, resource
from controller_client.policy.named_files import named_files, why_changed
from controller_client.policy.program_files import is_machine_code
from controller_client.program.child_environment import build_environment
from controller_client.program.directory_guard import open_directory
from controller_client.system.start_failure import StartFailed

files = named_files("/bin/true", "/")
import controller_client.program.child_environment as environment
environment.account_of.cache_clear()
free = os.open("/dev/null", os.O_RDONLY)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

def code_of(look):
    try:
        return look()
    except StartFailed as failed:
        return failed.failure.code
    except OSError as error:
        return error.strerror

print(code_of(lambda: why_changed("/bin/true", ("/", {}), files).code))
print(code_of(lambda: is_machine_code("/bin/true")))
print(code_of(lambda: open_directory("/tmp", [["/tmp"]])))
print(code_of(lambda: build_environment("s", {})))
"""


def test_what_nobody_could_look_at_is_not_changed_missing_or_a_script() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _LOOKS], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "RESOURCE_EXHAUSTED",
        "Too many open files",
        "RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED",
    ]
