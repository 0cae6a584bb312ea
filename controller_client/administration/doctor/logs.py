"""The check of the log directories that callers may monitor."""

from collections.abc import Iterator, Sequence

from controller_client.administration.doctor.finding import Finding
from controller_client.config.daemon import SESSION_LOGS
from controller_client.config.errors import ConfigurationError
from controller_client.config.log_directories import faults_of, log_paths


def examine_logs(roots: Sequence[str], session_logs: str | None) -> Iterator[Finding]:
    """Find log directories that cannot be used, or that everybody can change.

    The directory of session logs is the daemon's to make, so a missing one is no fault.
    """
    try:
        paths = log_paths(roots, session_logs or SESSION_LOGS)
    except ConfigurationError as error:
        yield Finding("logs", "problem", str(error), "name another, and start the daemon again")
        return
    faults = faults_of(paths, is_daemon=False)
    yield from (Finding("logs", "warning", *fault) for fault in faults)
    if not faults:
        yield Finding("logs", "ok", f"callers may monitor logs in {', '.join(paths.roots)}")
