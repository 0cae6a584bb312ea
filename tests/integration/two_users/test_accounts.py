"""The accounts that tests make are gone with the tests, however those end."""

import pwd
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.accounts import requires_root
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

_TEST = """
import signal
from tests.support.accounts import ordinary_user
with ordinary_user("x", may_sudo=True) as account:
    print(account.name, flush=True)
    signal.pause()
"""


def test_a_killed_run_leaves_no_account_behind() -> None:
    requires_root()
    with subprocess.Popen(
        [sys.executable, "-c", _TEST], cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        name = run.stdout.readline().strip()
        places = [Path("/home") / name, Path("/etc/sudoers.d") / name]
        assert _is_account(name)
        assert all(place.exists() for place in places)
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not _is_account(name), 60, "the account to be removed")
    wait_until(lambda: not any(place.exists() for place in places), 60, "its files to be removed")


def _is_account(name: str) -> bool:
    return name in {entry.pw_name for entry in pwd.getpwall()}
