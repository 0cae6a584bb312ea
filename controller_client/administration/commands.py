"""The commands about this host itself: their options, and which module does each.

Only the module of the command that was given is imported.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Commands(Protocol):
    """The commands that an argument parser has, to which more can be added."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:  # noqa: A002 (argparse's name)
        """Add a command, and return its parser."""


def add_commands(commands: Commands) -> None:
    """Declare every command of the administration."""
    _add_service(commands)
    sessions = _add(commands, "sessions", "List the sessions of this host, also without a server.")
    _add_json(sessions)
    kill = _add(commands, "kill", "End a session and all its processes, also without a server.")
    kill.add_argument("session", nargs="*", metavar="SESSION", help="the beginning of its id")
    kill.add_argument("--all", action="store_true", help="end every session of this host")
    attach = _add(commands, "attach", "Show what a session writes while no daemon runs.")
    attach.add_argument("session", metavar="SESSION", help="the beginning of its id")
    logs = _add(commands, "logs", "Show the log of the daemon.")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with what comes")
    logs.add_argument("-n", "--lines", type=int, default=50, help="default: %(default)s")
    _add_json(_add(commands, "doctor", "Look for what keeps this host from working."))
    completion = _add(commands, "completion", "Print the completion of this command for a shell.")
    completion.add_argument("shell", choices=("bash", "zsh"))


def perform(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Do the command; return its exit code. Raises ConfigurationError, EnrolmentFailed."""
    if options.command == "completion":
        from controller_client.administration.completion import print_completion

        return print_completion(parser, options.shell)
    return _action(options)(options)


def _action(options: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    if options.command == "service":
        from controller_client.administration import service

        actions = {
            "install": service.install,
            "uninstall": service.uninstall,
            "start": service.start,
            "stop": service.stop,
            "status": service.status,
            "upgrade": service.upgrade,
        }
        return actions[options.action]
    if options.command == "doctor":
        from controller_client.administration.doctor import examination

        return examination.examine
    from controller_client.administration import local_sessions

    return {
        "sessions": local_sessions.show,
        "kill": local_sessions.kill,
        "attach": local_sessions.attach,
        "logs": local_sessions.logs,
    }[options.command]


def _add(commands: Commands, name: str, purpose: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=purpose, description=purpose)
    command.add_argument("--config", type=Path, metavar="FILE|off", help="as for run")
    command.add_argument("--state-dir", type=Path, metavar="DIR", help="as for run")
    return command


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="for programs")


def _add_service(commands: Commands) -> None:
    purpose = "Install, start, stop or remove the daemon as a service of this host."
    service = commands.add_parser("service", help=purpose, description=purpose)
    actions = service.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = _add(actions, "install", "Make users, directories and service, enrol, and start.")
    install.add_argument("--server", metavar="URL", help="https://HOST")
    install.add_argument("--code", help="enrolment code; - reads it from stdin")
    install.add_argument("--replace", action="store_true", help="enrol a host that is enrolled")
    install.add_argument("--ca-file", type=Path, metavar="FILE", help="as for run")
    install.add_argument("--proxy", metavar="URL", help="as for run")
    install.add_argument(
        "--run-as",
        default=None,
        metavar="USER",
        help="whom the daemon runs as, and programs unless the policy names another user; is made "
        "if missing (default: holdline, and holdline-run for programs of a new host)",
    )
    install.add_argument(
        "--one-user",
        action="store_true",
        help="let programs of a new host run as the daemon's user",
    )
    install.add_argument(
        "--allow-sudo",
        action=argparse.BooleanOptionalAction,
        help="let set-uid programs such as sudo work in sessions (default: as the service lets "
        "them already; not at all with a new service of systemd, or with a new user of programs)",
    )
    install.add_argument("--name", help="as for enroll")
    install.add_argument("--label", action="append", metavar="WORD", help="as for enroll")
    uninstall = _add(actions, "uninstall", "Stop the service and remove it.")
    uninstall.add_argument("--end-sessions", action="store_true", help="end what still runs")
    uninstall.add_argument(
        "--purge", action="store_true", help="remove credential, state and configuration too"
    )
    others = [install, uninstall]
    for name, purpose in (
        ("start", "Start the service."),
        ("stop", "Stop the service; programs of sessions go on."),
        ("status", "Say whether the daemon is connected, or why not."),
        ("upgrade", "Get the newest version from the server; sessions go on."),
    ):
        others.append(_add(actions, name, purpose))
        if name == "status":
            _add_json(others[-1])
    for command in others:
        command.add_argument(
            "--user", action="store_true", help="a service of this user, without root"
        )
