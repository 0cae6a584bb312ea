"""Ordinary users of the test machine, and a Python that can run a daemon as one of them."""

import atexit
import compileall
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.running.exclusion import alone_with

_ACCOUNTS = Path("/etc")
"""The directory of the account files. Whoever changes them in a test is alone with it."""
_REMOVE = """
read -r _
rm -f "/etc/sudoers.d/$0" "/etc/sudoers.d/$0~" "/etc/sudoers.d/$0-"*
pkill -KILL -U "$0"
exec flock "$1" userdel --remove --force "$0"
"""
_HOST_PACKAGES = ("msgspec", "pexpect", "ptyprocess", "websockets")


@dataclass(frozen=True)
class Account:
    """A user; ``password`` is in the clear, for typing it."""

    name: str
    password: str
    uid: int
    gid: int
    home: Path

    @property
    def as_user(self) -> list[str]:
        """Prefix of an argv that becomes this user and stays the same process."""
        return ["setpriv", "--reuid", str(self.uid), "--regid", str(self.gid), "--init-groups"]

    @property
    def as_daemon(self) -> list[str]:
        """``as_user``, with the rights of a daemon whose programs run as another user."""
        rights = "+setuid,+setgid"
        return [*self.as_user, f"--inh-caps={rights}", f"--ambient-caps={rights}"]

    def write_policy(self, state_dir: Path) -> None:
        """Write a policy by which programs run as this user, and sudo works."""
        policy = state_dir / "policy.toml"
        policy.write_text(f'[users]\nrun_as = "{self.name}"\nmay_change = true\n')
        policy.chmod(0o600)

    @property
    def shell_prefix(self) -> str:
        """``as_user`` for a command line of a shell, with the user's own environment."""
        return f"{' '.join(self.as_user)} env HOME={self.home} USER={self.name} LOGNAME={self.name}"


def requires(*programs: str) -> None:
    """Skip the test if a program is not installed; fail it in CI.

    CI installs all programs that tests need.
    """
    missing = [
        program
        for program in programs
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None
    ]
    if missing:
        _cannot_run(f"not installed: {', '.join(missing)}")


def requires_root() -> None:
    """Skip the test for an ordinary user; fail it in CI, which runs as root."""
    if os.geteuid() != 0:
        _cannot_run("needs root")


def _cannot_run(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _run(*command: str, stdin: str | None = None) -> None:
    subprocess.run(command, input=stdin, text=True, check=True, capture_output=True)


@contextmanager
def ordinary_user(suffix: str, *, may_sudo: bool = False) -> Iterator[Account]:
    """A fresh account that is removed after the block.

    With ``may_sudo`` the account may do anything with sudo, after its password.
    """
    requires_root()
    requires("useradd", "userdel", "chpasswd", "setpriv", "pkill", "flock")
    name, password = f"hlt{os.getpid()}{suffix}", f"Corr3ct-horse-{suffix}"
    with _removed_afterwards(name):
        with alone_with(_ACCOUNTS):
            _run("useradd", "--create-home", "--shell", "/bin/bash", name)
        with alone_with(_ACCOUNTS):
            _run("chpasswd", stdin=f"{name}:{password}\n")
        if may_sudo:
            _allow_sudo(name)
        uid, gid = (int(subprocess.check_output(["id", flag, name])) for flag in ("-u", "-g"))
        yield Account(name, password, uid, gid, Path("/home") / name)


def _allow_sudo(name: str) -> None:
    rules = Path("/etc/sudoers.d") / name
    # sudo ignores files that end in a tilde, so it never reads half of this one.
    draft = rules.with_name(f"{name}~")
    draft.write_text(f"{name} ALL=(ALL) ALL\n")
    draft.chmod(0o440)
    draft.rename(rules)


@contextmanager
def _removed_afterwards(name: str) -> Iterator[None]:
    """Remove the account and its rules of sudo after the block, also if this process is killed.

    A shell in a session of its own does it as soon as nobody holds the other end of its pipe.
    """
    command = ["/bin/sh", "-c", _REMOVE, name, str(_ACCOUNTS)]
    null = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True, cwd="/"
    ):
        yield


@functools.cache
def host_libraries() -> Path:
    """A directory from which any user can import the daemon.

    It has the package ``controller_client`` and the packages that it needs, and nothing else.
    """
    target = Path(tempfile.mkdtemp(prefix="holdline-host-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    target.chmod(0o755)
    source = Path(__file__).resolve().parents[2] / "controller_client"
    # The bytecode is not copied, because other runs may be writing it right now. It is compiled
    # below, because the user may not write it.
    sources = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(source, target / "controller_client", ignore=sources)
    for package in _HOST_PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        shutil.copytree(spec.submodule_search_locations[0], target / package, ignore=sources)
    compileall.compile_dir(target, quiet=1)
    return target


def interpreter_for(account: Account) -> str:
    """A Python of this version that ``account`` may execute.

    Skips the test if there is none; fails it in CI.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        # A shell starts the interpreter, because setpriv still has root's capabilities when it
        # executes a program. The daemon's own children will not have them.
        probe = [
            *account.as_user,
            "/bin/sh",
            "-c",
            'exec "$0" -c "import msgspec, pexpect, websockets"',
            candidate,
        ]
        environment = {"PATH": os.defpath, "PYTHONPATH": str(host_libraries())}
        # cwd: the test's own directory may be closed to that user.
        if (
            subprocess.run(
                probe, env=environment, cwd="/", check=False, capture_output=True
            ).returncode
            == 0
        ):
            return candidate
    _cannot_run(f"no {version} that an ordinary user may execute")
    raise AssertionError("unreachable")
