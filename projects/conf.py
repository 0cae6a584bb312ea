"""Typed access to the settings of this app, read when used. Sizes are bytes, times are seconds."""

from django.conf import settings


class Conf:
    """One property per setting; ``config.settings.base`` says what each is for and which variable sets it."""

    @property
    def interactive_cmd_timeout_seconds(self) -> float:
        """INTERACTIVE_CMD_TIMEOUT_SECONDS: lifetime of a program unless its start says otherwise."""
        return float(settings.INTERACTIVE_CMD_TIMEOUT_SECONDS)

    @property
    def max_background_sessions(self) -> int:
        """MAX_BACKGROUND_SESSIONS: active background sessions of one project, and as many jobs."""
        return int(settings.MAX_BACKGROUND_SESSIONS)

    @property
    def background_lifetime_seconds(self) -> float:
        """BACKGROUND_LIFETIME_SECONDS: lifetime of a background session unless its start says otherwise."""
        return float(settings.BACKGROUND_LIFETIME_SECONDS)

    @property
    def background_idle_seconds(self) -> float:
        """BACKGROUND_IDLE_SECONDS: a background session that no caller asked for in this time is ended."""
        return float(settings.BACKGROUND_IDLE_SECONDS)

    @property
    def command_retention_seconds(self) -> float:
        """COMMAND_RETENTION_SECONDS: how long the output of one-shots, background sessions and jobs stays after their end."""
        return float(settings.COMMAND_RETENTION_SECONDS)

    @property
    def output_retention_seconds(self) -> float:
        """OUTPUT_RETENTION_SECONDS: how long the output of interactive sessions stays after their end; 0 for good."""
        return float(settings.OUTPUT_RETENTION_SECONDS)

    @property
    def session_retention_seconds(self) -> float:
        """SESSION_RETENTION_SECONDS: how long sessions stay after their end; 0 for good."""
        return float(settings.SESSION_RETENTION_SECONDS)

    @property
    def audit_retention_seconds(self) -> float:
        """AUDIT_RETENTION_SECONDS: how long audit rows stay; 0 for good."""
        return float(settings.AUDIT_RETENTION_SECONDS)

    @property
    def starts_per_minute(self) -> int:
        """STARTS_PER_MINUTE: sessions one API token may start per minute unless it says otherwise; 0 for any number."""
        return int(settings.STARTS_PER_MINUTE)

    @property
    def input_bytes_per_minute(self) -> int:
        """INPUT_BYTES_PER_MINUTE: bytes one API token may type per minute unless it says otherwise; 0 for any number."""
        return int(settings.INPUT_BYTES_PER_MINUTE)

    @property
    def login_failures_per_minute(self) -> int:
        """LOGIN_FAILURES_PER_MINUTE: wrong secrets for one token, or passwords for one user, from one address; 0 for any number."""
        return int(settings.LOGIN_FAILURES_PER_MINUTE)

    @property
    def max_one_shot_commands(self) -> int:
        """MAX_ONE_SHOT_COMMANDS: one-shots of one project at the same time."""
        return int(settings.MAX_ONE_SHOT_COMMANDS)

    @property
    def proxy_count(self) -> int:
        """PROXY_COUNT: proxies of our own that append to X-Forwarded-For."""
        return int(settings.PROXY_COUNT)

    @property
    def max_wait_seconds(self) -> float:
        """MAX_WAIT_SECONDS: the longest a call may wait."""
        return float(settings.MAX_WAIT_SECONDS)

    @property
    def safety_net_seconds(self) -> float:
        """SAFETY_NET_SECONDS: how long a lost doorbell can delay anything."""
        return float(settings.SAFETY_NET_SECONDS)

    @property
    def output_retained_bytes(self) -> int:
        """OUTPUT_RETAINED_BYTES: newest output kept of each session."""
        return int(settings.OUTPUT_RETAINED_BYTES)

    @property
    def max_monitors(self) -> int:
        """MAX_MONITORS: active monitors of one project."""
        return int(settings.MAX_MONITORS)

    @property
    def monitor_retained_bytes(self) -> int:
        """MONITOR_RETAINED_BYTES: newest content kept of what each monitor has read."""
        return int(settings.MONITOR_RETAINED_BYTES)

    @property
    def audit_sign_seconds(self) -> float:
        """AUDIT_SIGN_SECONDS: each chain of the audit log that has grown is signed this often."""
        return float(settings.AUDIT_SIGN_SECONDS)

    @property
    def sweep_seconds(self) -> float:
        """SWEEP_SECONDS: time between two rounds of the sweeper."""
        return float(settings.SWEEP_SECONDS)

    @property
    def stop_seconds(self) -> float:
        """STOP_SECONDS: how long a process that is told to stop may take over it."""
        return float(settings.STOP_SECONDS)

    @property
    def metrics_token(self) -> str:
        """METRICS_TOKEN: what a scraper shows as its bearer token; empty: nobody needs one."""
        return str(settings.METRICS_TOKEN)

    @property
    def local_metrics(self) -> bool:
        """LOCAL_METRICS: without METRICS_TOKEN, whether the machine itself may see the metrics."""
        return bool(settings.LOCAL_METRICS)

    @property
    def hello_deadline_seconds(self) -> float:
        """HELLO_DEADLINE_SECONDS: a connection that says nothing is closed after this."""
        return float(settings.HELLO_DEADLINE_SECONDS)

    @property
    def heartbeat_seconds(self) -> float:
        """HEARTBEAT_SECONDS: time between two PINGs."""
        return float(settings.HEARTBEAT_SECONDS)

    @property
    def dead_after_seconds(self) -> float:
        """DEAD_AFTER_SECONDS: a connection silent for this long is dead."""
        return float(settings.DEAD_AFTER_SECONDS)

    @property
    def lease_seconds(self) -> float:
        """LEASE_SECONDS: a controller counts as online for this long after its last sign of life."""
        return float(settings.LEASE_SECONDS)

    @property
    def database_threads(self) -> int:
        """DATABASE_THREADS: threads for short transactions, each with its own connection."""
        return int(settings.DATABASE_THREADS)

    @property
    def encryption_keys(self) -> tuple[str, ...]:
        """ENCRYPTION_KEYS: Fernet keys; the first encrypts, all decrypt."""
        return tuple(settings.ENCRYPTION_KEYS)

    @property
    def max_calls_per_token(self) -> int:
        """MAX_CALLS_PER_TOKEN: calls of one API token that a process answers at the same time, those that wait among them."""
        return int(settings.MAX_CALLS_PER_TOKEN)

    @property
    def enrolment_approval(self) -> bool:
        """ENROLMENT_APPROVAL: whether a host that enrols itself is served only after an operator has let it in."""
        return bool(settings.ENROLMENT_APPROVAL)

    @property
    def allowed_commands(self) -> list[str] | None:
        """ALLOWED_COMMANDS: what a project without a list of its own may run; None for anything."""
        return None if settings.ALLOWED_COMMANDS is None else list(settings.ALLOWED_COMMANDS)

    @property
    def allowed_directories(self) -> list[str] | None:
        """ALLOWED_DIRECTORIES: where programs of a project without a list of its own may be started; None for anywhere."""
        return None if settings.ALLOWED_DIRECTORIES is None else list(settings.ALLOWED_DIRECTORIES)

    @property
    def session_limits(self) -> dict[str, int | None]:
        """SESSION_LIMITS: what a session may use, by the names of ``ResourceLimits``; None for as much as its host allows."""
        return dict(settings.SESSION_LIMITS)

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """ALLOWED_HOSTS: values of the Host header that are served."""
        return tuple(settings.ALLOWED_HOSTS)

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """ALLOWED_ORIGINS: browser origins that may call ``/mcp``."""
        return tuple(settings.ALLOWED_ORIGINS)

    @property
    def public_url(self) -> str:
        """PUBLIC_URL: origin by which callers reach the server, without a slash at its end; empty for the one they used."""
        return str(settings.PUBLIC_URL)

    @property
    def secure_proxy_ssl_header(self) -> tuple[str, str] | None:
        """SECURE_PROXY_SSL_HEADER: set where X-Forwarded-Proto comes from our own proxy."""
        header: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
        return header


conf = Conf()
