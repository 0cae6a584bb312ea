"""The command line: ``holdline-controller run|enroll|rotate …``. Exit codes: 0 done, 1 refused by the server, 64 usage, 78 not usable."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from controller_client import __version__, log
from controller_client.config import check_user, default_credential_file, default_state_dir, load_config, prepare_state_dir
from controller_client.errors import EXIT_CONFIG, EXIT_OK, EXIT_REFUSED, EXIT_USAGE, ConfigurationError, EnrolmentFailed
from controller_client.log_paths import MANAGED_DIRECTORY, LogPaths
from controller_client.protocol.messages import ResourceLimits


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    log.configure(options.log_level)
    try:
        {"run": _run, "enroll": _enroll, "rotate": _rotate}[options.command](options)
    except ConfigurationError as error:
        sys.stderr.write(f"holdline-controller: {error}\n")
        return EXIT_CONFIG
    except EnrolmentFailed as error:
        sys.stderr.write(f"holdline-controller: {error}\n")
        return EXIT_REFUSED
    return EXIT_OK


def _run(options: argparse.Namespace) -> None:
    config = load_config(
        server=options.server,
        credential_file=options.credential_file,
        state_dir=options.state_dir,
        allow_root=options.allow_root,
        policy_file=options.policy,
        limits=ResourceLimits(
            processes=options.max_processes,
            memory_bytes=_mebibytes(options.max_memory),
            file_size_bytes=_mebibytes(options.max_file_size),
            open_files=options.max_open_files,
        ),
        control_group=options.control_group,
        log_paths=LogPaths(options.log_root, options.session_logs),
    )
    # Imported once the configuration holds, so that a refusal is quick.
    from controller_client.daemon import run_daemon

    asyncio.run(run_daemon(config))


def _enroll(options: argparse.Namespace) -> None:
    # Imported by whom it is for: the daemon never asks for a credential.
    from controller_client.enrolment import enrol

    check_user(allow_root=options.allow_root)
    # An argument is seen by every user of the host; a code read from stdin is not.
    code = sys.stdin.readline().strip() if options.code == "-" else options.code
    file = _credential_file(options)
    name, awaits_approval = enrol(server=options.server, code=code, credential_file=file, is_replacing=options.replace)
    rest = "\nan operator of the server has to approve it before it is served" if awaits_approval else ""
    sys.stdout.write(f"enrolled as {name}; the credential is in {file}{rest}\n")


def _rotate(options: argparse.Namespace) -> None:
    from controller_client.enrolment import rotate

    check_user(allow_root=options.allow_root)
    file = _credential_file(options)
    name = rotate(server=options.server, credential_file=file)
    sys.stdout.write(f"{name} has a new credential in {file}; the old one is good for a day at most\n")


def _credential_file(options: argparse.Namespace) -> Path:
    if options.credential_file is not None:
        return Path(options.credential_file)
    return default_credential_file(prepare_state_dir(options.state_dir or default_state_dir()))


def console() -> NoReturn:
    """The script ``holdline-controller``."""
    sys.exit(main())


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError(text)
    return number


def _mebibytes(number: int | None) -> int | None:
    return None if number is None else number * 1024 * 1024


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="holdline-controller", description="Connects this host to a Holdline server and runs its sessions.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|enroll|rotate")
    run = commands.add_parser("run", help="connect to the server and stay connected until SIGTERM")
    enroll = commands.add_parser("enroll", help="become a controller of the server with a code that works once")
    enroll.add_argument("--code", required=True, help="from manage.py create_enrolment_code; - reads it from stdin")
    enroll.add_argument("--replace", action="store_true", help="give up the credential that is in the file")
    rotate = commands.add_parser("rotate", help="put a new credential in the place of the one in the file; the daemon need not stop")
    for command in (run, enroll, rotate):
        _add_common(command)
    run.add_argument(
        "--policy", type=Path, metavar="FILE", help="what may run here (default: /etc/holdline/policy.toml and policy.toml of --state-dir)"
    )
    run.add_argument("--max-processes", type=_positive, metavar="N", help="of each session; of the user where there is no control group")
    run.add_argument("--max-memory", type=_positive, metavar="MIB", help="of each session; of each process where there is no control group")
    run.add_argument("--max-file-size", type=_positive, metavar="MIB", help="of each file a program writes")
    run.add_argument("--max-open-files", type=_positive, metavar="N", help="of each process")
    run.add_argument(
        "--control-group", default="auto", metavar="auto|off|PATH", help="cgroup v2 directory for sessions (default: the delegated one)"
    )
    run.add_argument(
        "--session-logs", default=MANAGED_DIRECTORY, metavar="DIR", help="logs that may be monitored and deleted (default: %(default)s)"
    )
    run.add_argument("--log-root", action="append", default=[], metavar="DIR", help="more logs that may be monitored; may be repeated")
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--server", required=True, metavar="URL", help="wss://host/ws/controller/; ws:// to a loopback address only")
    command.add_argument(
        "--credential-file", type=Path, metavar="FILE", help="one line ctl_<keyid>_<secret>, mode 0600 (default: credential in --state-dir)"
    )
    command.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="sessions and identity (default: ~/.local/state/holdline-controller)"
    )
    command.add_argument("--allow-root", action="store_true", help="run as root although every program will, too")
    command.add_argument("--log-level", choices=log.LEVELS, default="info")
