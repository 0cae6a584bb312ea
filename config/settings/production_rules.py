"""Rules for a server that others reach: which defaults and values ``production`` refuses."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from projects.conf.setting import TRUE, Environment, items_of

MIN_SECRET_CHARS: Final = 50
MIN_TOKEN_CHARS: Final = 24


def report_unsafe(environment: Environment) -> None:
    """Add every broken rule to the problems of ``environment``.

    ``environment.finish`` raises them together with whatever else is wrong.
    """
    _check_keys(environment)
    _check_names(environment)
    _check_backends(environment)
    if environment.text("HOLDLINE_DEBUG").lower() in TRUE:
        environment.problem("HOLDLINE_DEBUG must be off: its pages show settings and contents")
    if environment.text("HOLDLINE_LOG_LEVEL").upper() in {"DEBUG", "NOTSET"}:
        environment.problem(
            "HOLDLINE_LOG_LEVEL must be INFO or higher: libraries log contents below that"
        )
    token = environment.text("HOLDLINE_METRICS_TOKEN")
    if token and len(token) < MIN_TOKEN_CHARS:
        environment.problem(
            f"HOLDLINE_METRICS_TOKEN must have at least {MIN_TOKEN_CHARS} characters, or be "
            "unset: then there is no /metrics"
        )


def _check_keys(environment: Environment) -> None:
    # Keys that a process makes on first use are lost with its disk, and no other process has them.
    secret = environment.text("HOLDLINE_SECRET_KEY")
    if len(secret) < MIN_SECRET_CHARS or len(set(secret)) < 10:
        environment.problem(
            f"HOLDLINE_SECRET_KEY must be set, to at least {MIN_SECRET_CHARS} random characters"
        )
    if not environment.text("HOLDLINE_ENCRYPTION_KEYS"):
        environment.problem("HOLDLINE_ENCRYPTION_KEYS must be set")


def _check_names(environment: Environment) -> None:
    hosts = items_of(environment.text("HOLDLINE_ALLOWED_HOSTS"))
    if not hosts or any(host.strip(".") in {"", "*"} for host in hosts):
        environment.problem("HOLDLINE_ALLOWED_HOSTS must name the hosts, without *")
    origins = items_of(environment.text("HOLDLINE_ALLOWED_ORIGINS"))
    if not all(origin.startswith("https://") for origin in origins):
        environment.problem("HOLDLINE_ALLOWED_ORIGINS must be https:// origins")
    if not environment.text("HOLDLINE_PUBLIC_URL").startswith("https://"):
        environment.problem("HOLDLINE_PUBLIC_URL must be set, to an https:// origin")


def _check_backends(environment: Environment) -> None:
    redis, database = environment.text("REDIS_URL"), environment.text("DATABASE_URL")
    if redis and not database.startswith(("postgres://", "postgresql://")):
        environment.problem(
            "DATABASE_URL must be postgres:// where REDIS_URL is set: several processes need one "
            "database"
        )
    for name, url in (("REDIS_URL", redis), ("DATABASE_URL", database)):
        if url and not url.startswith(("sqlite:", "unix:")) and not _is_guarded(url):
            environment.problem(f"{name} must hold a password: whoever reaches it would need none")


def _is_guarded(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        # No URL at all, which is refused where it is read.
        return True
    # A local socket or a server on this machine may authenticate by other means than a password.
    return bool(parts.password) or not parts.hostname or _is_loopback(parts.hostname)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
