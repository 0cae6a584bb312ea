"""The command line: ``holdline-controller run …``. Exit codes: 0 stopped, 64 usage, 78 configuration."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from controller_client import __version__, log
from controller_client.config import load_config
from controller_client.errors import EXIT_CONFIG, EXIT_OK, EXIT_USAGE, ConfigurationError
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
    except ConfigurationError as error:
        sys.stderr.write(f"holdline-controller: {error}\n")
        return EXIT_CONFIG
    return EXIT_OK


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
    commands = parser.add_subparsers(dest="command", required=True, metavar="run")
    run = commands.add_parser("run", help="connect to the server and stay connected until SIGTERM")
    run.add_argument("--server", required=True, metavar="URL", help="wss://host/ws/controller/; ws:// to a loopback address only")
    run.add_argument("--credential-file", required=True, type=Path, metavar="FILE", help="one line ctl_<keyid>_<secret>, mode 0600")
    run.add_argument("--state-dir", type=Path, metavar="DIR", help="sessions and identity (default: ~/.local/state/holdline-controller)")
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
    run.add_argument("--allow-root", action="store_true", help="run as root although every program will, too")
    run.add_argument("--log-level", choices=log.LEVELS, default="info")
    return parser
