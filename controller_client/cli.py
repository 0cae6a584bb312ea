"""The command line of the daemon: ``holdline-controller run``, ``enroll`` and ``rotate``.

Each command has one function that declares its options and one that runs it. The commands of the
``administration`` are declared there.

Exit codes of these commands: 0 done; 1 the server refused the enrolment or could not be asked; 64
wrong usage; 75 the daemon has to be started again; 78 the configuration cannot be used, and the
message says what to change; 141 nobody reads the output. The administration has more meanings of 1.
"""

import argparse
import asyncio
import re
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

from controller_client.config import log
from controller_client.config.daemon import SESSION_LOGS, check_user, load_config
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import (
    MOST,
    OFF,
    OPTIONS,
    SYSTEM_FILE,
    find_file,
    is_visible,
    read_file,
    user_file,
)
from controller_client.config.open_files import enough_open_files
from controller_client.config.places import default_credential_file, prepare_state_dir
from controller_client.config.server_address import Way, check_way
from controller_client.server_link.errors import EnrolmentFailed, ForkServerLost
from controller_client.server_link.version import build_version
from controller_client.system.standard_output import reader_may_go

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 64
EXIT_AGAIN: Final = 75
EXIT_CONFIG: Final = 78
_DAEMON_COMMANDS: Final = ("run", "enroll", "rotate")

# The values of options that neither the command line nor the configuration file names.
_DEFAULTS: Final = MappingProxyType(
    {
        "allow_root": False,
        "log_level": "info",
        "session_logs": SESSION_LOGS,
        "log_root": (),
        "control_group": "auto",
    }
)


class _Parser(argparse.ArgumentParser):
    """argparse's parser, with EXIT_USAGE where argparse exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and ``message``, and exit."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}. See {self.prog} --help.\n")


class _Version(argparse.Action):
    """Prints the version, and computes it only then: it has a digest of the code, which is slow."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:  # noqa: A002 (argparse's name)
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(f"{build_version()}\n")
        parser.exit()


def console() -> NoReturn:
    """Entry point of the script ``holdline-controller``: exits with the code of :func:`main`."""
    with reader_may_go():
        try:
            code = main()
        except BrokenPipeError:
            raise
        except Exception as error:
            traceback.print_exc()
            _leave(EXIT_REFUSED)
            raise SystemExit(EXIT_REFUSED) from error
        _leave(code)
        sys.exit(code)


def _leave(code: int) -> None:
    """Exit with ``code`` if a thread hangs: at its exit Python would wait for it for ever."""
    if threading.active_count() > 1:
        from controller_client.server_link.ready_threads import leave

        leave(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Raises SystemExit for --help, --version and wrong usage, as argparse does.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    # The daemon's own commands do not load the modules of the administration.
    is_daemon_command = bool(arguments) and arguments[0] in _DAEMON_COMMANDS
    parser = _parser(with_administration=not is_daemon_command)
    options = parser.parse_args(arguments)
    try:
        if options.command not in _DAEMON_COMMANDS:
            return _administer(options, parser)
        _complete(options)
        if options.server is None:
            parser.error(f"name the server: --server URL, or server in {SYSTEM_FILE}")
        log.configure(options.log_level)
        check_user(allow_root=options.allow_root)
        with enough_open_files():
            options.carry_out(options)
    except ConfigurationError as error:
        return _fail(error, EXIT_CONFIG)
    except EnrolmentFailed as error:
        return _fail(error, EXIT_REFUSED)
    except ForkServerLost as error:
        return _fail(error, EXIT_AGAIN)
    return EXIT_OK


def _administer(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Do a command of the administration; ``doctor`` reports a bad configuration file itself."""
    if options.command != "completion":
        # A service of this user takes nothing from the host's own configuration file.
        if getattr(options, "user", False) and options.config is None:
            options.config = user_file() if is_visible(user_file()) else OFF
        try:
            _complete(options)
        except ConfigurationError as error:
            if options.command != "doctor":
                raise
            options.problem = str(error)
    from controller_client.administration.commands import perform

    try:
        return perform(options, parser)
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk, say, or a file of others.
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise ConfigurationError(f"{options.command} was cut short: {told}") from None


def _complete(options: argparse.Namespace) -> None:
    """Take what the command line leaves open from the configuration file, else from _DEFAULTS."""
    for name in OPTIONS:
        setattr(options, name, getattr(options, name, None))
    file = find_file(options.config)
    values = dict(_DEFAULTS)
    if file is not None:
        values.update(read_file(file))
    for name, value in values.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"holdline-controller: {error}\n")
    return code


def _parser(*, with_administration: bool) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="holdline-controller",
        description="Connect this host to a Holdline server and run the server's sessions here.",
    )
    parser.add_argument("--version", action=_Version, help="print the version, and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, add_options, carry_out, purpose in (
        ("run", _add_run, _run, "Connect to the server and stay connected until SIGTERM."),
        ("enroll", _add_enroll, _enroll, "Get this host's credential with an enrolment code."),
        ("rotate", _add_common, _rotate, "Replace the credential; a running daemon takes it."),
    ):
        command = commands.add_parser(name, help=purpose, description=purpose)
        add_options(command)
        command.set_defaults(carry_out=carry_out)
    if with_administration:
        from controller_client.administration.commands import add_commands

        add_commands(commands)
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config",
        type=Path,
        metavar="FILE|off",
        help="file of options, which come first (default: /etc/holdline/controller.toml, else "
        "~/.config/holdline/controller.toml, if present)",
    )
    command.add_argument(
        "--server",
        metavar="URL",
        help="https://HOST or wss://HOST/ws/controller/; unencrypted to a loopback address only",
    )
    command.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="authorities to trust instead of the system's, in PEM",
    )
    command.add_argument(
        "--proxy", metavar="URL", help="http://[USER:PASSWORD@]HOST:PORT, which takes CONNECT"
    )
    command.add_argument(
        "--credential-file",
        type=Path,
        metavar="FILE",
        help="one line ctl_<keyid>_<secret>, mode 0600 (default: credential in --state-dir)",
    )
    command.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="identity and sessions of this host (default: /var/lib/holdline-controller if it is "
        "this user's, else ~/.local/state/holdline-controller)",
    )
    command.add_argument(
        "--allow-root",
        action="store_true",
        default=None,
        help="allow to run as root; programs run as root too, unless the policy names another user",
    )
    command.add_argument(
        "--log-level", choices=log.LEVELS, help=f"default: {_DEFAULTS['log_level']}"
    )


# ---- run


def _add_run(run: argparse.ArgumentParser) -> None:
    _add_common(run)
    run.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="policy of this host (default: /etc/holdline/policy.toml and policy.toml "
        "in --state-dir, if present)",
    )
    run.add_argument(
        "--session-logs",
        metavar="DIR",
        help=f"directory of logs that callers may monitor and delete (default: {SESSION_LOGS})",
    )
    run.add_argument(
        "--log-root",
        action="append",
        metavar="DIR",
        help="another directory of logs that callers may monitor; can be repeated",
    )
    limits = run.add_argument_group(
        "limits", "The most that a session may use. The server can ask for less, never for more."
    )
    limits.add_argument(
        "--max-processes",
        type=_count,
        metavar="N",
        help="processes of a session at once; without a control group, of the user of programs",
    )
    limits.add_argument(
        "--max-memory",
        type=_mebibytes,
        metavar="MIB",
        help="memory of a session; without a control group, of each process",
    )
    limits.add_argument(
        "--max-file-size", type=_mebibytes, metavar="MIB", help="size of each file that is written"
    )
    limits.add_argument(
        "--max-open-files", type=_count, metavar="N", help="open files of each process"
    )
    limits.add_argument(
        "--control-group",
        metavar="auto|off|PATH",
        help="cgroup v2 directory for the groups of sessions (default: the one delegated to the "
        "daemon, if any)",
    )


def _run(options: argparse.Namespace) -> None:
    config = load_config(
        server=options.server,
        credential_file=options.credential_file,
        state_dir=options.state_dir,
        policy_file=options.policy,
        max_processes=options.max_processes,
        max_memory_bytes=options.max_memory,
        max_file_size_bytes=options.max_file_size,
        max_open_files=options.max_open_files,
        control_group=options.control_group,
        log_roots=options.log_root,
        session_logs=options.session_logs,
        way=_way(options),
    )
    # Imported late: the daemon's modules take a moment to load, and a configuration that cannot be
    # used has been refused by now.
    from controller_client.server_link.daemon import run_daemon

    asyncio.run(run_daemon(config))


def _count(text: str) -> int:
    """Convert the number of an option, within the bounds of the configuration file."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:64]!a} is not a whole number from 1 to {MOST}")
    return number


def _mebibytes(text: str) -> int:
    """Convert the mebibytes of an option to bytes."""
    return _count(text) * 1024 * 1024


# ---- enroll, rotate


def _add_enroll(enroll: argparse.ArgumentParser) -> None:
    _add_common(enroll)
    enroll.add_argument(
        "--code",
        required=True,
        help="enrolment code from manage.py create_enrolment_code; - reads it from stdin",
    )
    enroll.add_argument(
        "--name",
        help="name of this host, for a key that serves a number of hosts (default: its hostname)",
    )
    enroll.add_argument(
        "--label", action="append", metavar="WORD", help="label of this host; can be repeated"
    )
    enroll.add_argument(
        "--replace", action="store_true", help="replace the credential that is in the file"
    )


def _enroll(options: argparse.Namespace) -> None:
    # Imported here: the daemon, which never asks for a credential, does not load the HTTP client.
    from controller_client.server_link.enrolment import enrol

    # Every user of the host can see the arguments of a process, but not what it reads from stdin.
    code = sys.stdin.readline().strip() if options.code == "-" else options.code
    file = _credential_file(options)
    name, awaits_approval = enrol(
        server=options.server,
        code=code,
        credential_file=file,
        is_replacing=options.replace,
        way=_way(options),
        name=options.name or _own_name(),
        labels=options.label or (),
    )
    sys.stdout.write(f"enrolled as {name}; the credential is in {file}\n")
    if awaits_approval:
        sys.stdout.write("The server serves this host once an operator has approved it.\n")


def _own_name() -> str:
    """The first part of the hostname, as far as a controller can have that name."""
    first_part, _, _ = socket.gethostname().partition(".")
    return re.sub(r"[^A-Za-z0-9_-]", "-", first_part)[:64]


def _rotate(options: argparse.Namespace) -> None:
    from controller_client.server_link.enrolment import rotate

    file = _credential_file(options)
    name = rotate(server=options.server, credential_file=file, way=_way(options))
    sys.stdout.write(
        f"{name} has a new credential in {file}; the old one works for a day at most\n"
    )


def _way(options: argparse.Namespace) -> Way:
    return check_way(options.ca_file, options.proxy)


def _credential_file(options: argparse.Namespace) -> Path:
    """The file of --credential-file, or the one in the state directory, which is made if absent."""
    return options.credential_file or default_credential_file(prepare_state_dir(options.state_dir))
