"""The log directories that the options name, and what an operator has to correct about them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from controller_client.config.errors import ConfigurationError
from controller_client.logs.paths import LogPaths
from controller_client.system.files.open_place import open_place


class Fault(NamedTuple):
    """A log directory that cannot be used, or that everybody can change, and what to do."""

    text: str
    remedy: str


def log_paths(roots: Sequence[str], session_logs: str) -> LogPaths:
    """Return the log directories of the options. Raises ConfigurationError."""
    try:
        return LogPaths(roots, session_logs)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def faults_of(paths: LogPaths, *, is_daemon: bool = True) -> list[Fault]:
    """Find log directories that cannot be used, and those in which everybody can exchange logs.

    ``is_daemon`` False: this process is not the daemon, so the directory of session logs, which the
    daemon makes, is not looked into.
    """
    closed = [
        Fault(
            f"no log in {root} can be monitored: {reason}",
            f"{_option_of(root, paths)} names it: correct it, or name another, and start the "
            "daemon again",
        )
        for root in paths.roots
        if (is_daemon or root != paths.managed) and (reason := paths.problem_of(root))
    ]
    return closed + [
        Fault(
            f"every user of this host can exchange the logs in {root}, which "
            f"{_option_of(root, paths)} names",
            f"chmod o-w {place}",
        )
        for root in paths.roots
        if (place := open_place(Path(root))) is not None
    ]


def _option_of(root: str, paths: LogPaths) -> str:
    """Return the option that names a log directory, with its key of the configuration file."""
    if root == paths.managed:
        return "--session-logs (session_logs)"
    return "--log-root (log_roots)"
