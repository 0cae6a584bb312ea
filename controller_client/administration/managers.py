"""The managers that keep the daemon running on a host: systemd, launchd, or nothing at all.

Each writes what it needs to start the daemon, and starts and stops it. Programs of sessions go on
whatever happens to the daemon.
"""

import os
import plistlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from controller_client.administration.installation import Installation, Switch, say, write
from controller_client.administration.unit import (
    UNIT,
    allows_sudo,
    changes_user,
    is_cut,
    is_ours,
    mark_of,
    read_unit,
    unit_text,
)
from controller_client.config.errors import ConfigurationError
from controller_client.session_files.daemon_status import is_daemon_running, read_status

LABEL: Final = "holdline.controller"
LOG_NAME: Final = "daemon.log"
_DEPLOY: Final = Path(__file__).resolve().parents[1] / "deploy"
_SYSTEMD: Final = Path("/run/systemd/system")
_STOP_SECONDS: Final = 60.0
_START_SECONDS: Final = 60.0
_TOLD_SECONDS: Final = 10.0
_LOOK_AGAIN_SECONDS: Final = 0.05
_KEEP: Final = "keep-running"
# Runs the daemon again and again while the file is there. The codes are those of a daemon that was
# stopped, and of one that a restart would not help.
_AGAIN: Final = """
while [ -e "$0" ]; do
    "$@"
    code=$?
    case $code in 0|64|78) exit $code;; esac
    sleep 2
done
"""


class Manager(Protocol):
    """A way to keep the daemon running."""

    def install(self, *, allow_sudo: bool | None) -> None:
        """Write what starts the daemon, and have it started at boot if that is possible.

        ``allow_sudo``: None for what holds already, and for no sudo with a new service.
        """

    def remove(self) -> None:
        """Remove what ``install`` wrote; the daemon does not run any more."""

    def start(self) -> None:
        """Start the daemon, or start it again."""

    def stop(self) -> None:
        """Stop the daemon; programs of sessions go on."""

    @property
    def log(self) -> Path | None:
        """The file of the daemon's log; None where the manager itself keeps the log."""

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the daemon's log; it reads ``log`` from its input."""


def manager_of(place: Installation) -> Manager:
    """Return what keeps daemons running here. Raises ConfigurationError."""
    if sys.platform == "darwin":
        return Launchd(place)
    if not _SYSTEMD.is_dir() or shutil.which("systemctl") is None:
        return Unmanaged(place)
    systemd = Systemd(place)
    if place.is_system or _runs(["systemctl", "--user", "show-environment"]):
        return systemd
    if systemd.is_installed:
        # A daemon in the background would compete with the one that systemd starts again.
        raise ConfigurationError(
            "the service is one of this user's systemd, which does not answer here, as after su or "
            f"in cron: log in as {place.user}, or set XDG_RUNTIME_DIR=/run/user/{os.getuid()}"
        )
    return Unmanaged(place)


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(f"{' '.join(command)} failed: {done.stderr.strip()}")


@dataclass(frozen=True)
class Systemd:
    """A unit of the system's systemd, or of the user's own."""

    place: Installation

    @property
    def _unit(self) -> Path:
        if self.place.is_system:
            return Path("/etc/systemd/system") / UNIT
        return Path(self.place.account.pw_dir) / ".config/systemd/user" / UNIT

    @property
    def is_installed(self) -> bool:
        """True if an installation has written the unit."""
        return self._unit.exists()

    def _control(self, *arguments: str) -> None:
        _do("systemctl", *(() if self.place.is_system else ("--user",)), *arguments)

    def install(self, *, allow_sudo: bool | None) -> None:
        """Write the unit and enable it."""
        if allow_sudo is None:
            allow_sudo = self.is_installed and allows_sudo(read_unit(self._unit))
        self._unit.parent.mkdir(parents=True, exist_ok=True)
        self._write(unit_text(self.place, allow_sudo=allow_sudo))
        self._control("enable", UNIT)
        if not self.place.is_system and shutil.which("loginctl"):
            # Without it, systemd ends the daemon when the user logs out.
            _runs(["loginctl", "enable-linger", self.place.user])

    def _write(self, text: str) -> None:
        # The doctor reads it as the daemon's user.
        write(self._unit, text, self.place, mode=0o644)
        self._control("daemon-reload")
        say(f"wrote {self._unit}")

    def _renew(self) -> None:
        """Write the unit as this version and the policy want it, unless a person changed it."""
        # A masked unit is a link there. That systemd starts none is said by systemd.
        if not self.is_installed or self._unit.resolve() == Path(os.devnull):
            return
        found = read_unit(self._unit)
        written = {sudo: unit_text(self.place, allow_sudo=sudo) for sudo in (False, True)}
        wanted = written[allows_sudo(found)]
        has_lost_end = is_cut(found, written.values())
        if mark_of(found) == mark_of(wanted) and not has_lost_end:
            return
        if is_ours(found) or has_lost_end:
            self._write(wanted)
        else:
            say(
                f"kept {self._unit}, which was changed by hand and is not as this version writes "
                "it. To have it written: holdline-controller service install. Settings of your "
                f"own: systemctl edit {UNIT}"
            )

    def remove(self) -> None:
        """Disable the unit and remove it."""
        if self.is_installed:
            self._control("disable", UNIT)
            self._unit.unlink()
            self._control("daemon-reload")

    def start(self) -> None:
        """Start the unit, or start it again; it is brought up to date before."""
        self._renew()
        self._control("restart", UNIT)

    def stop(self) -> None:
        """Stop the unit, if there is one; programs of sessions go on."""
        if self._is_known():
            self._control("stop", UNIT)

    def _is_known(self) -> bool:
        # The unit of a package is not where the unit of an installation is.
        whose = () if self.place.is_system else ("--user",)
        shown = ["systemctl", *whose, "show", "--property=LoadState", "--value", UNIT]
        found = subprocess.run(shown, capture_output=True, text=True, check=False)
        return found.stdout.strip() != "not-found"

    @property
    def log(self) -> None:
        """No file: the journal has it."""

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the unit's journal."""
        whose = [] if self.place.is_system else ["--user"]
        more = ["--follow"] if follow else ["--no-pager"]
        return ["journalctl", *whose, "--unit", UNIT, "--lines", str(lines), *more]


@dataclass(frozen=True)
class Launchd:
    """A job of launchd: of the system's for root, else of the user's own."""

    place: Installation

    @property
    def _file(self) -> Path:
        if self.place.is_system:
            return Path("/Library/LaunchDaemons") / f"{LABEL}.plist"
        return Path.home() / "Library/LaunchAgents" / f"{LABEL}.plist"

    @property
    def _domain(self) -> str:
        return "system" if self.place.is_system else f"gui/{os.getuid()}"

    @property
    def log(self) -> Path:
        """The file that launchd writes."""
        return self.place.state_dir / LOG_NAME

    def install(self, *, allow_sudo: bool | None) -> None:
        """Write the property list. launchd never keeps sudo from working in sessions."""
        del allow_sudo
        with (_DEPLOY / f"{LABEL}.plist").open("rb") as file:
            job = plistlib.load(file)
        job["ProgramArguments"] = self.place.arguments("run")
        job["StandardErrorPath"] = str(self.log)
        if self.place.is_system:
            job["UserName"] = self.place.user
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(plistlib.dumps(job))
        say(f"wrote {self._file}")

    def remove(self) -> None:
        """Remove the property list, which loads the job at boot."""
        self._file.unlink(missing_ok=True)

    def start(self) -> None:
        """Load the job, after its earlier state is gone."""
        self.stop()
        _do("launchctl", "bootstrap", self._domain, str(self._file))

    def stop(self) -> None:
        """Unload the job; programs of sessions go on."""
        _runs(["launchctl", "bootout", f"{self._domain}/{LABEL}"])

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the job's log."""
        return tail(lines, follow=follow)


@dataclass(frozen=True)
class Unmanaged:
    """A daemon in the background of a host without a service manager, such as a container.

    A shell starts it again when it ends by itself. Nothing starts it at boot.
    """

    place: Installation

    def install(self, *, allow_sudo: bool | None) -> None:
        """Say what is missing. Only the policy can keep sudo from working in sessions here."""
        del allow_sudo
        say(
            "no systemd or launchd runs here: the daemon runs in the background until the next boot"
        )

    def remove(self) -> None:
        """Do nothing: nothing was written."""

    def start(self) -> None:
        """Start the daemon as its user, in a session of its own, and again when it ends."""
        self.stop()
        keep, log = self.place.state_dir / _KEEP, self.log
        self._do_as_user('rm -f "$0" && : > "$0"', str(keep))
        rights, switch = self._become_user()
        # The log is in a directory of the user's, so the user opens it, not root. With rights to
        # become other users the shell that waits is root's, so that the daemon cannot take them.
        # A FIFO of a program in the log's place would have the shell wait for a reader.
        opens = '[ -f "$0" ] || rm -f "$0"; exec "$@" >>"$0" 2>&1'
        run = [*rights, "/bin/sh", "-c", opens, str(log)]
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _AGAIN, str(keep), *run, *self.place.arguments("run")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=self.place.environment,
            start_new_session=True,
            umask=0o077,
            **switch,
        )
        until(
            lambda: shell.poll() is not None or read_status(self.place.state_dir) is not None,
            _START_SECONDS,
        )
        if read_status(self.place.state_dir) is None:
            self._do_as_user('rm -f "$0"', str(keep))
            raise ConfigurationError(f"the daemon does not start; see {log}")

    def _do_as_user(self, script: str, argument: str) -> None:
        # Programs of sessions may be the user's: root writes no file, and sends no signal, on
        # their word. And they can read the environment of the user's processes.
        subprocess.run(
            ["/bin/sh", "-c", script, argument],
            check=False,
            capture_output=True,
            cwd="/",
            env=self.place.environment,
            **self.place.switch,
        )

    def _become_user(self) -> tuple[list[str], Switch]:
        """Return what makes root's child the user: a command, or arguments of ``subprocess``."""
        if os.geteuid() != 0 or not changes_user(self.place):
            return [], self.place.switch
        if (setpriv := shutil.which("setpriv")) is None:
            raise ConfigurationError("run_as of the policy needs setpriv here, of util-linux")
        account, rights = self.place.account, "+setuid,+setgid"
        ids = [f"--reuid={account.pw_name}", f"--regid={account.pw_gid}", "--init-groups"]
        return [setpriv, *ids, f"--inh-caps={rights}", f"--ambient-caps={rights}"], {}

    def stop(self) -> None:
        """End the daemon that has the state directory, if there is one."""
        state_dir = self.place.state_dir
        self._do_as_user('rm -f "$0"', str(state_dir / _KEEP))
        # A daemon that has just begun has the directory before its file tells which process it is.
        if not until(
            lambda: read_status(state_dir) or not is_daemon_running(state_dir), _TOLD_SECONDS
        ):
            raise ConfigurationError(f"the daemon that has {state_dir} does not tell its process")
        if (status := read_status(state_dir)) is None:
            return
        self._do_as_user('kill -TERM "$0"', str(status.pid))
        if not until(lambda: not is_daemon_running(state_dir), _STOP_SECONDS):
            raise ConfigurationError(f"the daemon (process {status.pid}) does not end")

    @property
    def log(self) -> Path:
        """The file that the shell in the background opens."""
        return self.place.state_dir / LOG_NAME

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the daemon's log."""
        return tail(lines, follow=follow)


def tail(lines: int, *, follow: bool) -> list[str]:
    """Return the command that shows the end of what is its standard input."""
    return ["tail", "-n", str(lines), *(["-f"] if follow else [])]


def until(is_so: Callable[[], object], seconds: float) -> bool:
    """Look again and again until it is so; False if that takes too long."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            return False
        pause.wait(_LOOK_AGAIN_SECONDS)
    return True
