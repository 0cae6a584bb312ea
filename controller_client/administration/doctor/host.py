"""The checks of this host: Python, credential, state directory, kernel, sudo and disk."""

import os
import platform
import pwd
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from controller_client.administration.doctor.finding import Finding
from controller_client.config.errors import ConfigurationError
from controller_client.config.places import default_credential_file, read_credential
from controller_client.policy.file import stop_files
from controller_client.policy.kill_switch import kept_stop
from controller_client.session_files.daemon_status import DaemonStatus
from controller_client.system.absence import is_there

_OLD_DAYS: Final = 365
# How a user without a name is named: to sudo, in a shell, and to chown.
_SUDO_NUMBER: Final = "'#{}'"
_PLAIN_NUMBER: Final = "{}"
_LITTLE_BYTES: Final = 1 << 30
_TOO_LITTLE_BYTES: Final = 64 << 20
_ENROL: Final = (
    "with a code of the server's operator: holdline-controller service install --code enr_…"
)
_ALLOW_SUDO: Final = "if it shall: holdline-controller service install --allow-sudo"
_LOOK: Final = "look at the log: holdline-controller logs"
AS_OWNER: Final = "run the doctor with sudo, or as the daemon's user"
_PROC: Final = Path("/proc")


def check_python() -> Finding:
    """See that this Python is new enough, and that every user can run it."""
    version = platform.python_version()
    real = Path(sys.executable).resolve()
    # From the top: what is below a closed directory cannot be looked at.
    for place in (*reversed(real.parents), real):
        if not _is_open_to_all(place):
            return Finding(
                "python",
                "warning",
                f"{version} at {real}, which other users cannot run: {place} is closed to them",
                "use a Python of the system, such as /usr/bin/python3",
            )
    return Finding("python", "ok", f"{version} at {real}")


def _is_open_to_all(place: Path) -> bool:
    try:
        return bool(place.stat().st_mode & stat.S_IXOTH)
    except OSError:
        return False


def check_state_dir(state_dir: Path) -> Finding:
    """See that the state directory is there, private, and this user's."""
    try:
        status = os.lstat(state_dir)
    except OSError as error:
        return Finding(
            "state",
            "problem",
            f"{state_dir}: {error.strerror}",
            "holdline-controller service install makes it"
            if isinstance(error, FileNotFoundError)
            else AS_OWNER,
        )
    if not stat.S_ISDIR(status.st_mode):
        return Finding("state", "problem", f"{state_dir} is no directory", "name it in state_dir")
    if status.st_mode & 0o077:
        return Finding(
            "state", "problem", f"{state_dir} is open to others", f"chmod 700 {state_dir}"
        )
    if status.st_uid != os.geteuid() or not os.access(state_dir, os.W_OK):
        return Finding(
            "state",
            "problem",
            f"{state_dir} belongs to user {status.st_uid}, and this is user {os.geteuid()}",
            AS_OWNER,
        )
    return Finding("state", "ok", f"{state_dir} is this user's")


def check_credential(state_dir: Path) -> Finding:
    """See that the credential can be used, and how old it is."""
    file = default_credential_file(state_dir)
    try:
        read_credential(file)
        days = (time.time() - file.stat().st_mtime) / 86400
    except (ConfigurationError, OSError) as error:
        return Finding("credential", "problem", str(error), _cure_of(file))
    if days > _OLD_DAYS:
        return Finding(
            # Root may run the doctor, and may not rotate.
            "credential",
            "warning",
            f"{days:.0f} days old",
            f"sudo -u {_own_name(_SUDO_NUMBER)} holdline-controller rotate",
        )
    return Finding("credential", "ok", f"{days:.0f} days old")


def name_of(user: int) -> str:
    """Return the name of a user, or words for its number."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _own_name(number: str) -> str:
    """Return this user's name for a command; without one its number, written as ``number``."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return number.format(os.geteuid())


def _cure_of(file: Path) -> str:
    """Return the remedy for a credential that this user cannot use."""
    try:
        status = os.lstat(file)
    except PermissionError:
        return AS_OWNER
    except OSError:
        return _ENROL
    if not stat.S_ISREG(status.st_mode):
        return f"remove {file}, and enrol {_ENROL}"
    if status.st_uid != os.geteuid():
        return f"sudo chown {_own_name(_PLAIN_NUMBER)} {file}"
    # A credential that others could read may still be good.
    return f"chmod 600 {file}" if status.st_mode & 0o077 else _ENROL


def check_daemon(status: DaemonStatus | None) -> Finding:
    """See that the daemon runs and is connected."""
    if status is None:
        return Finding("daemon", "problem", "not running", "holdline-controller service start")
    if status.state == "connected":
        return Finding("daemon", "ok", f"connected, version {status.version}")
    if status.state == "connecting":
        return Finding("daemon", "problem", "connecting", "run the doctor again in a moment")
    remedy = "see the lines above" if status.state == "unreachable" else status.why
    return Finding("daemon", "problem", f"{status.state}: {status.why}", remedy or _LOOK)


def check_stop(state_dir: Path) -> Finding:
    """See that the kill switch is off."""
    for place in (*stop_files(state_dir), kept_stop(state_dir)):
        try:
            is_stopped = is_there(place)
        except OSError as error:
            return Finding(
                "stop",
                "warning",
                f"cannot look at {place}: {error.strerror}",
                "run the doctor with sudo",
            )
        if is_stopped:
            remedy = f"stop the daemon, remove {place}, and start it"
            return Finding("stop", "problem", f"this host is stopped by {place}", remedy)
    return Finding("stop", "ok", "the kill switch is off")


def check_control_group(daemon: DaemonStatus | None) -> Finding:
    """See whether each session gets a control group of its own."""
    if not sys.platform.startswith("linux"):
        return Finding("cgroup", "note", "none on this system: each process is limited by itself")
    own = _lines_of(daemon.pid if daemon is not None else None, "cgroup")
    group = next((line[3:] for line in own if line.startswith("0::")), "")
    if group.endswith("/daemon"):
        return Finding("cgroup", "ok", f"each session has a group in {group}")
    return Finding(
        "cgroup",
        "note",
        "not delegated: limits are of each process, and ends are found by search",
        "run the daemon as a service of systemd 254 or newer",
    )


def check_evidence() -> Finding:
    """See whether the kernel tells here what a program of the same user waits for."""
    if not sys.platform.startswith("linux"):
        return Finding("evidence", "note", "this kernel does not tell what a program waits for")
    # A program of its own, as those of sessions are: a mere fork may be hidden, as this process is.
    # Its environment can be read by programs of its user, and this one's may be root's.
    program = subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": os.defpath}
    )
    try:
        _talk(program)
        (_PROC / str(program.pid) / "syscall").read_text()
    except OSError as error:
        return Finding(
            "evidence",
            "warning",
            f"/proc does not tell what programs wait for: {error.strerror}",
            "allow ptrace of own children: in a container --cap-add SYS_PTRACE, else "
            "kernel.yama.ptrace_scope below 3",
        )
    finally:
        program.communicate()
    return Finding("evidence", "ok", "/proc tells what programs of this user wait for")


def _talk(program: "subprocess.Popen[bytes]") -> None:
    """Wait until the program has begun: only then its process is no part of this one any more."""
    if program.stdin is not None and program.stdout is not None:
        program.stdin.write(b"\n")
        program.stdin.flush()
        program.stdout.readline()


def check_sudo(daemon: DaemonStatus | None, *, keeps_user: bool = False) -> Finding:
    """See whether programs of sessions can use sudo, and why not."""
    if shutil.which("sudo") is None:
        return Finding("sudo", "note", "not installed here")
    if keeps_user:
        return Finding(
            "sudo",
            "note",
            "does not work in sessions: [users] of the policy has no may_change = true",
            _ALLOW_SUDO,
        )
    status = _lines_of(daemon.pid if daemon is not None else None, "status")
    if "NoNewPrivs:\t1" in status:
        return Finding(
            "sudo",
            "note",
            "does not work in sessions: the service has NoNewPrivileges=yes",
            _ALLOW_SUDO,
        )
    return Finding("sudo", "note", "can work in sessions, if the user may use it")


def check_disk(state_dir: Path) -> Finding:
    """See that the disk of the state directory has room."""
    try:
        free = shutil.disk_usage(state_dir).free
    except OSError as error:
        return Finding("disk", "problem", f"{state_dir}: {error.strerror}", "make the directory")
    told = f"{free >> 20} MiB are free in {state_dir}"
    if free < _TOO_LITTLE_BYTES:
        return Finding("disk", "problem", told, "free some space: no session can start")
    if free < _LITTLE_BYTES:
        return Finding("disk", "warning", told, "free some space")
    return Finding("disk", "ok", told)


def _lines_of(pid: int | None, name: str) -> list[str]:
    """Return the lines of a file of the daemon's in /proc, or else of this process."""
    for whose in (str(pid), "self"):
        try:
            return (_PROC / whose / name).read_text().splitlines()
        except OSError:
            continue
    return []
