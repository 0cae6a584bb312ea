"""The settings of the server, declared once and read typed: ``conf.max_wait_seconds``."""

from typing import Final

from django.conf import settings

from controller_client.protocol import limits
from projects.conf.setting import (
    Choice,
    Directories,
    Flag,
    Items,
    Networks,
    Number,
    Origin,
    Programs,
    Seconds,
    Text,
)

_DAY: Final = 24 * 3600.0


class Conf:
    """Each attribute is a setting of ``docs/reference/settings.md``, which has the same words."""

    encryption_keys = Items(
        "HOLDLINE_ENCRYPTION_KEYS",
        (),
        "comma-separated Fernet keys for secrets and outbox bodies. The first key encrypts, all of "
        "them decrypt. [Changing it](../howto/secrets.md#change-the-key)",
        shown="made on first use, in the data directory",
    )
    allowed_hosts = Items(
        "HOLDLINE_ALLOWED_HOSTS",
        ("localhost", "127.0.0.1", "[::1]"),
        "values of the `Host` header that the server answers",
        shown="`localhost,127.0.0.1,[::1]`",
    )
    allowed_origins = Items(
        "HOLDLINE_ALLOWED_ORIGINS",
        (),
        "browser origins that may call `/mcp` and the admin, such as `https://tools.example.com`. "
        "Their pages may call `/mcp` with a token and read the answer (CORS). Cookies are never "
        "accepted there",
        shown="none",
    )
    public_url = Origin(
        "HOLDLINE_PUBLIC_URL",
        "",
        "origin by which callers reach the server, such as `https://holdline.example.com`; an MCP "
        "client without a token is told it",
        shown="the `Host` of the request",
    )
    # ``config.settings.base`` replaces the empty text by the directory in the data directory.
    bundle_dir = Text(
        "HOLDLINE_BUNDLE_DIR",
        "",
        "directory of the [bundles](../howto/run-a-controller.md#what-the-server-needs) that hosts "
        "install the daemon from",
        shown="`bundles` in the data directory",
    )
    allowed_commands = Programs(
        "ALLOWED_COMMANDS",
        ("*",),
        "comma-separated programs that projects without a list of their own may run, such as "
        "`sleep,echo,python3:shell`. See [policy](../howto/policy.md)",
        shown="`*`: any",
    )
    allowed_directories = Directories(
        "ALLOWED_DIRECTORIES",
        (),
        "comma-separated directories of the host in which projects without a list of their own may "
        "start programs",
        shown="none: anywhere",
    )
    limit_processes = Number(
        "HOLDLINE_LIMIT_PROCESSES",
        0,
        "most processes of a session; sent with every start. See "
        "[policy](../howto/policy.md#what-a-session-may-use)",
        shown="0: as many as the host allows",
    )
    limit_memory_bytes = Number(
        "HOLDLINE_LIMIT_MEMORY_BYTES",
        0,
        "most memory of a session",
        shown="0: as much as the host allows",
    )
    limit_file_size_bytes = Number(
        "HOLDLINE_LIMIT_FILE_SIZE_BYTES",
        0,
        "largest file that a session writes",
        shown="0: as much as the host allows",
    )
    limit_open_files = Number(
        "HOLDLINE_LIMIT_OPEN_FILES",
        0,
        "most open files of each process of a session",
        shown="0: as many as the host allows",
    )
    interactive_cmd_timeout_seconds = Seconds(
        "INTERACTIVE_CMD_TIMEOUT_SECONDS",
        300.0,
        "default and longest lifetime of an interactive session, unless its project says otherwise "
        "(*Default lifetime*, *Maximum lifetime*). A call that asks for more is refused with "
        "`LIFETIME_TOO_LONG`",
        at_least=1.0,
    )
    max_background_sessions = Number(
        "MAX_BACKGROUND_SESSIONS",
        32,
        "most active background sessions of one project, and most active jobs. The next start is "
        "refused",
        at_least=1,
    )
    background_lifetime_seconds = Seconds(
        "HOLDLINE_BACKGROUND_LIFETIME_SECONDS",
        _DAY,
        "lifetime of a background session unless its start names another",
        at_least=1.0,
    )
    background_idle_seconds = Seconds(
        "HOLDLINE_BACKGROUND_IDLE_SECONDS",
        1800.0,
        "a background session is ended, by `idle`, if no caller asks for it for this long",
        at_least=0.1,
    )
    keyboard_idle_minutes = Number(
        "HOLDLINE_KEYBOARD_IDLE_MINUTES",
        15,
        "an operator in the console who types nothing for this long hands the keyboard back",
        at_least=1,
    )
    command_retention_seconds = Seconds(
        "HOLDLINE_COMMAND_RETENTION_SECONDS",
        _DAY,
        "how long the output of one-shots, background sessions and jobs is kept after their end, "
        "and the content of monitors after their stop. A project may say otherwise for the output "
        "of its sessions",
        at_least=1.0,
    )
    output_retention_seconds = Seconds(
        "HOLDLINE_OUTPUT_RETENTION_SECONDS",
        30 * _DAY,
        "how long the output of interactive sessions is kept after their end; 0: for good. A "
        "project may say otherwise for all its output",
        shown="2592000 (30 days)",
    )
    session_retention_seconds = Seconds(
        "HOLDLINE_SESSION_RETENTION_SECONDS",
        90 * _DAY,
        "how long sessions are kept after their end, with their output, commands and gaps; 0: for "
        "good. A project may say otherwise",
        shown="7776000 (90 days)",
    )
    audit_retention_seconds = Seconds(
        "HOLDLINE_AUDIT_RETENTION_SECONDS",
        400 * _DAY,
        "how long audit rows are kept; 0: for good. The rows that remain still verify",
        shown="34560000 (400 days)",
    )
    attention_retention_seconds = Seconds(
        "HOLDLINE_ATTENTION_RETENTION_SECONDS",
        30 * _DAY,
        "how long [events](../howto/attention.md) and their messages are kept; 0: for good",
        shown="2592000 (30 days)",
    )
    attention_networks = Networks(
        "HOLDLINE_ATTENTION_NETWORKS",
        (),
        "comma-separated networks, such as `10.0.0.0/8`, in which messages may be sent to "
        "[targets](../howto/attention.md#where-messages-may-go) although they are private, "
        "link-local or this machine",
        shown="none: public addresses only",
    )
    starts_per_minute = Number(
        "HOLDLINE_STARTS_PER_MINUTE",
        6000,
        "sessions that one API token may start per minute, unless the token says otherwise; 0: any "
        "number. The whole amount of a minute may come at once",
    )
    input_bytes_per_minute = Number(
        "HOLDLINE_INPUT_BYTES_PER_MINUTE",
        64 * 1024 * 1024,
        "bytes that one API token may type per minute, unless the token says otherwise; 0: any "
        "number. Each server process reserves a 64th of this amount and of the starts at a time, "
        "so it may refuse that much early. A start or an input that is refused counts for both "
        "rates, too, unless the refusal says `retryable`",
    )
    login_failures_per_minute = Number(
        "HOLDLINE_LOGIN_FAILURES_PER_MINUTE",
        30,
        "most wrong secrets for one token, wrong passwords for one user, or wrong enrolment codes "
        "from one address (of IPv6: from one /64). After that the address gets 429 for them; 0: "
        "any number",
    )
    # An agent has a few calls open; what a process bears in all, without delaying anybody, are
    # some thousands.
    max_calls_per_token = Number(
        "HOLDLINE_MAX_CALLS_PER_TOKEN",
        64,
        "most calls of one API token that a server process answers at the same time, waiting calls "
        "included. Four times as many wait in line for up to 10 s, first come, first served. "
        "Further calls are refused with `RATE_LIMITED`",
        at_least=1,
    )
    request_seconds = Seconds(
        "HOLDLINE_REQUEST_SECONDS",
        20.0,
        "how long a request may take to arrive, from its first byte to the last byte of its body; "
        "then 408. The time of the answer does not count",
        at_least=0.1,
    )
    idle_seconds = Seconds(
        "HOLDLINE_IDLE_SECONDS",
        60.0,
        "a connection without a request is closed after this, and one whose peer takes nothing of "
        "an answer after twice as long",
        at_least=0.1,
    )
    require_second_factor = Flag(
        "HOLDLINE_REQUIRE_SECOND_FACTOR",
        False,
        "true: people get no further than the page that sets up their "
        "[second factor](../howto/administer.md#the-second-factor) until they have one",
    )
    enrolment_approval = Flag(
        "HOLDLINE_ENROLMENT_APPROVAL",
        False,
        "true: a host that enrols itself is served only after an operator has "
        "[approved](../howto/run-a-controller.md#enrol-the-host) it",
    )
    approval_seconds = Seconds(
        "HOLDLINE_APPROVAL_SECONDS",
        _DAY,
        "how long a call waits for a person's [approval](../howto/approvals.md), and how long "
        "an approved call may still begin",
        at_least=1.0,
    )
    max_pending_approvals = Number(
        "HOLDLINE_MAX_PENDING_APPROVALS",
        200,
        "most calls of one project that wait for an approval. The next call is refused",
        at_least=1,
    )
    max_one_shot_commands = Number(
        "HOLDLINE_MAX_ONE_SHOT_COMMANDS",
        256,
        "most one-shots of one project that run at the same time",
        at_least=1,
    )
    proxy_count = Number(
        "HOLDLINE_PROXY_COUNT",
        0,
        "number of your proxies that append to `X-Forwarded-For`. 0: the address of the connection "
        "counts, which is the same for everybody behind a proxy",
    )
    max_wait_seconds = Seconds(
        "HOLDLINE_MAX_WAIT_SECONDS",
        30.0,
        "longest wait of one call; a one-shot waits for its own timeout, up to 45 s. MCP clients "
        "give up after 60 s",
    )
    safety_net_seconds = Seconds(
        "HOLDLINE_SAFETY_NET_SECONDS",
        1.0,
        "everybody who waits for a doorbell looks again after this; a lost doorbell delays no more",
        at_least=0.01,
    )
    output_retained_bytes = Number(
        "HOLDLINE_OUTPUT_RETAINED_BYTES",
        256 * 1024 * 1024,
        "output to keep of each session, newest first; older bytes become a gap",
        at_least=limits.MAX_CHUNK_BYTES,
    )
    max_monitors = Number(
        "HOLDLINE_MAX_MONITORS",
        1000,
        "most active monitors of one project. The next start is refused",
        at_least=1,
    )
    monitor_retained_bytes = Number(
        "HOLDLINE_MONITOR_RETAINED_BYTES",
        16 * 1024 * 1024,
        "content to keep of each monitor for search, newest first",
        at_least=limits.MAX_CHUNK_BYTES,
    )
    audit_sign_seconds = Seconds(
        "HOLDLINE_AUDIT_SIGN_SECONDS",
        60.0,
        "how often each chain of audit rows (one per project, one of the server) is signed if it "
        "has grown. See [audit](../howto/audit.md)",
    )
    sweep_seconds = Seconds(
        "HOLDLINE_SWEEP_SECONDS", 5.0, "time between two rounds of the sweeper", at_least=0.05
    )
    server = Choice(
        "HOLDLINE_SERVER",
        "daphne",
        "the ASGI server that `python -m config.server`, `bin/quickstart` and the image start: "
        "`daphne` or `uvicorn`. See "
        "[start a server](../howto/start-a-server.md#choose-how-to-serve)",
        choices=("daphne", "uvicorn"),
    )
    stop_seconds = Seconds(
        "HOLDLINE_STOP_SECONDS",
        10.0,
        "after SIGTERM: time to answer waiting calls and to send the controllers elsewhere. Give "
        "the service manager a few seconds more",
    )
    metrics_token = Text(
        "HOLDLINE_METRICS_TOKEN",
        "",
        "bearer token that a scraper of `/metrics` must send. With the settings of production and "
        "without it there is no `/metrics`",
        shown="none: only this machine may read them",
    )
    # ``config.settings.base`` replaces the 0 by a number that suits the database.
    database_threads = Number(
        "HOLDLINE_DATABASE_THREADS",
        0,
        "threads for short transactions, each with a connection. Up to five more threads do "
        "long reads and the upkeep",
        at_least=1,
        shown="1 on SQLite, 4 otherwise",
    )
    hello_deadline_seconds = Seconds(
        "HOLDLINE_HELLO_DEADLINE_SECONDS",
        limits.HELLO_DEADLINE_SECONDS,
        "a controller's connection without HELLO is closed after this",
        at_least=0.05,
    )
    heartbeat_seconds = Seconds(
        "HOLDLINE_HEARTBEAT_SECONDS",
        limits.HEARTBEAT_SECONDS,
        "time between two PINGs; WELCOME tells it to the daemon",
        at_least=0.05,
    )
    dead_after_seconds = Seconds(
        "HOLDLINE_DEAD_AFTER_SECONDS",
        limits.DEAD_AFTER_SECONDS,
        "a connection that is silent for this long counts as dead",
        at_least=0.1,
    )
    lease_seconds = Seconds(
        "HOLDLINE_LEASE_SECONDS",
        limits.LEASE_SECONDS,
        "a controller counts as online for this long after its last sign of life",
        at_least=0.1,
    )

    @property
    def session_limits(self) -> dict[str, int | None]:
        """Limits of a session, by the fields of ``ResourceLimits``; None: as the host allows."""
        return {
            "processes": self.limit_processes or None,
            "memory_bytes": self.limit_memory_bytes or None,
            "file_size_bytes": self.limit_file_size_bytes or None,
            "open_files": self.limit_open_files or None,
        }

    @property
    def local_metrics(self) -> bool:
        """LOCAL_METRICS: without a token, whether the machine itself may read ``/metrics``."""
        return bool(settings.LOCAL_METRICS)

    @property
    def data_upload_max_memory_size(self) -> int:
        """DATA_UPLOAD_MAX_MEMORY_SIZE: the largest body of a request to any address, in bytes."""
        return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

    @property
    def secure_proxy_ssl_header(self) -> tuple[str, str] | None:
        """SECURE_PROXY_SSL_HEADER: set where X-Forwarded-Proto comes from a proxy of the server."""
        header: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
        return header


conf = Conf()
