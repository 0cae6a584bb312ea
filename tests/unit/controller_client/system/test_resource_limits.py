"""The lower of two limits, and what a process is left with."""

import subprocess
import sys

import pytest

from controller_client.protocol.messages import ResourceLimits
from controller_client.system.resource_limits import lowest


def test_each_limit_is_the_lower_one_and_none_is_no_limit() -> None:
    asked = ResourceLimits(processes=10, memory_bytes=500, open_files=None)
    allowed = ResourceLimits(processes=20, memory_bytes=100, file_size_bytes=7)
    assert lowest(asked, allowed) == ResourceLimits(
        processes=10, memory_bytes=100, file_size_bytes=7
    )
    assert lowest(ResourceLimits(), ResourceLimits()) == ResourceLimits()


@pytest.mark.parametrize(
    ("limits", "kind", "expected"),
    [
        ("open_files=64", "NOFILE", "(64, 64)"),
        ("file_size_bytes=4096", "FSIZE", "(4096, 4096)"),
        ("processes=77", "NPROC", "(77, 77)"),
        ("memory_bytes=1 << 33", "AS", "(8589934592, 8589934592)"),
        # The largest number that a message has.
        ("memory_bytes=1 << 62", "AS", "(4611686018427387904, 4611686018427387904)"),
        ("file_size_bytes=0", "FSIZE", "(0, 0)"),
    ],
)
def test_a_process_is_limited_for_good(limits: str, kind: str, expected: str) -> None:
    code = (
        "import resource\nfrom controller_client.system.resource_limits import apply\n"
        "from controller_client.protocol.messages import ResourceLimits\n"
        f"apply(ResourceLimits({limits}))\nprint(resource.getrlimit(resource.RLIMIT_{kind}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == expected
    )


def test_no_core_files_for_good() -> None:
    code = (
        "import resource\nfrom controller_client.system.resource_limits import forbid_core_files\n"
        "forbid_core_files()\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "(0, 0)"
    )


def test_a_limit_above_the_one_in_force_leaves_that() -> None:
    code = (
        "import resource\nfrom controller_client.system.resource_limits import apply\n"
        "from controller_client.protocol.messages import ResourceLimits\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))\n"
        "apply(ResourceLimits(open_files=5000))\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "(50, 50)"
    )
