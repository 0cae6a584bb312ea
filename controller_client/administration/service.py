"""``holdline-controller service``: the daemon as a service of this host, from its user to its end.

Everything can be done again without harm.
"""

import argparse
import json
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from controller_client.administration import programs_user
from controller_client.administration.installation import (
    Installation,
    find,
    make,
    one_line,
    say,
    write_configuration,
)
from controller_client.administration.local_sessions import Found, become_owner, sessions_of
from controller_client.administration.managers import manager_of, until
from controller_client.config.errors import ConfigurationError
from controller_client.config.server_address import check_server_url, check_way
from controller_client.session_files.daemon_status import read_status
from controller_client.system.absence import is_there
from controller_client.system.files.tree import remove_tree

_CONNECT_SECONDS: Final = 10.0
NOT_CONNECTED: Final = 1
NOT_RUNNING: Final = 3
_PACKAGE: Final = Path("/usr/lib/holdline-controller")
# A proxy may have a password, which is not for the list of processes.
_PROXY: Final = "HOLDLINE_PROXY"


def install(options: argparse.Namespace) -> int:
    """Make users, directories, configuration and service; enrol; start."""
    place = find(options)
    # The daemon that is started here has no use for it: it is in its configuration.
    handed_on = os.environ.pop(_PROXY, None)
    options.proxy = options.proxy or handed_on
    gets_two_users = programs_user.is_wanted(place, options)
    make(place)
    if gets_two_users:
        # Before the configuration, by which a host that was set up half-way counts as new.
        programs_user.make(place, allow_sudo=options.allow_sudo)
    programs_user.set_sudo(place, options)
    write_configuration(place, options)
    _enrol(place, options)
    manager = manager_of(place)
    manager.install(allow_sudo=options.allow_sudo)
    if not place.credential_file.exists():
        say(
            "not started: this host is not enrolled yet. Get a code from the server's operator, "
            "then: holdline-controller service install --code enr_…"
        )
        return 0
    manager.start()
    return _told_when_connected(place)


def _enrol(place: Installation, options: argparse.Namespace) -> None:
    is_enrolled = place.credential_file.exists()
    if options.code is None or (is_enrolled and not options.replace):
        if options.code is not None:
            say("this host is enrolled already, so the code is not used")
        return
    # The daemon's user reads the code from stdin, so that nobody sees it in the process list.
    code = sys.stdin.readline().strip() if options.code == "-" else options.code
    more = ["--replace"] if options.replace else []
    more += ["--name", options.name] if options.name else []
    for label in options.label or ():
        more += ["--label", label]
    say(place.run_as_user("enroll", "--code", "-", *more, stdin=f"{code}\n").rstrip())


def _told_when_connected(place: Installation) -> int:
    become_owner(place.state_dir)

    def is_settled() -> bool:
        status = read_status(place.state_dir)
        return status is not None and status.state != "connecting"

    until(is_settled, _CONNECT_SECONDS)
    return _tell(place, as_json=False)


def start(options: argparse.Namespace) -> int:
    """Start the service, and say whether it connected."""
    place = find(options)
    manager_of(place).start()
    return _told_when_connected(place)


def stop(options: argparse.Namespace) -> int:
    """Stop the service, and say what goes on."""
    place = find(options)
    manager_of(place).stop()
    say("stopped")
    _list_what_goes_on(_left(place))
    return 0


def status(options: argparse.Namespace) -> int:
    """Say whether the daemon is connected, or why not; the exit code says the same."""
    place = find(options)
    become_owner(place.state_dir)
    return _tell(place, as_json=options.json)


def _tell(place: Installation, *, as_json: bool) -> int:
    try:
        found = read_status(place.state_dir)
    except OSError as error:
        raise ConfigurationError(
            f"cannot look at {place.state_dir}: {error.strerror}; run it with sudo"
        ) from None
    running = sum(one.is_running for one in sessions_of(place.state_dir))
    if as_json:
        shown = None if found is None else {name: getattr(found, name) for name in _SHOWN}
        say(json.dumps({"daemon": shown, "sessions": running}))
    elif found is None:
        say(f"not running; start it: holdline-controller service start\nsessions: {running}")
    else:
        reason = f": {one_line(found.why)}" if found.why else ""
        say(
            f"{found.state} ({one_line(found.server)}) since {_moment(found.since)}{reason}\n"
            f"version {one_line(found.version)}, process {found.pid}, "
            f"started {_moment(found.started)}\n"
            f"sessions: {running}"
        )
    if found is None:
        return NOT_RUNNING
    return 0 if found.state == "connected" else NOT_CONNECTED


_SHOWN: Final = ("state", "why", "since", "server", "version", "pid", "started")


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def uninstall(options: argparse.Namespace) -> int:
    """Stop the service and remove it; list what goes on, or end that too."""
    place = find(options)
    manager = manager_of(place)
    manager.stop()
    manager.remove()
    say("the service is removed")
    left = _left(place)
    if left and (options.end_sessions or _is_agreed(left)):
        # What goes on all the same is listed below.
        with suppress(ConfigurationError):
            say(place.run_as_user("kill", "--all", "--state-dir", str(place.state_dir)).rstrip())
        left = _left(place)
    _list_what_goes_on(left)
    if options.purge:
        _purge(place, is_in_use=bool(left))
    else:
        say(f"kept: {place.state_dir} (with the credential) and {place.config_file}")
    return 0


def _left(place: Installation) -> list[Found]:
    """The sessions that go on, as the user of the installation sees them."""
    if not place.state_dir.is_dir():
        return []
    told = place.run_as_user("sessions", "--json", "--state-dir", str(place.state_dir))
    return [found for one in json.loads(told) if (found := Found(**one)).is_running]


def _is_agreed(left: list[Found]) -> bool:
    """Ask a person who can answer whether the sessions shall end."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    say(f"{len(left)} sessions still run here:")
    _list(left)
    try:
        return input("End them? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _list_what_goes_on(found: list[Found]) -> None:
    if found:
        say("these sessions go on; end them with: holdline-controller kill SESSION")
        _list(found)


def _list(found: list[Found]) -> None:
    for one in found:
        say(f"  {one.session_id}  {one_line(one.command)}")


def _purge(place: Installation, *, is_in_use: bool) -> None:
    if is_in_use:
        raise ConfigurationError("nothing is purged while sessions run; add --end-sessions")
    if is_there(place.state_dir):
        # If it fails, the configuration stays, by which the next purge finds the rest.
        remove_tree(place.state_dir)
    for file in (place.config_file, place.config_file.with_name("ca.pem")):
        file.unlink(missing_ok=True)
    programs_user.forget(place.config_file.parent)
    # A policy, a stop file or a configuration of another daemon keeps it.
    with suppress(OSError):
        place.config_file.parent.rmdir()
    say(f"removed {place.state_dir} and {place.config_file}")


def upgrade(options: argparse.Namespace) -> int:
    """Fetch the server's installer and run it, as the one line does. Sessions go on."""
    # Imported here: nothing else of the service needs an HTTP client.
    from controller_client.server_link.enrolment import fetch

    if options.server is None:
        raise ConfigurationError("name the server in the configuration file")
    if _PACKAGE in Path(sys.prefix).parents:
        raise ConfigurationError(
            "this daemon is of the Debian package holdline-controller: install a newer package"
        )
    way = check_way(options.ca_file, options.proxy)
    script = fetch(check_server_url(options.server), way, "/install.sh")
    arguments = ["--upgrade", *(["--user"] if options.user or os.geteuid() else [])]
    arguments += ["--ca-file", str(way.ca_file)] if way.ca_file is not None else []
    environment = {**os.environ, **({_PROXY: way.proxy} if way.proxy else {})}
    shell = str(Path("/bin/sh"))
    ran = subprocess.run(
        [shell, "-s", "--", *arguments], input=script, env=environment, check=False
    )
    return ran.returncode
