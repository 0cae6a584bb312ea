"""Settings of a server on one machine: SQLite, in-memory channel layer, loopback. ``production`` hardens them.

Every variable is read here, through ``config.env``; ``projects.conf`` gives the rest of the code typed access.
"""

import re
import secrets
from pathlib import Path

from cryptography.fernet import Fernet

from config.channel_layer import channel_layers
from config.databases import database_settings
from config.key_file import read_or_make_key
from config.settings import environment
from controller_client.protocol import limits

BASE_DIR = Path(__file__).resolve().parent.parent.parent

DATA_DIR = environment.path("HOLDLINE_DATA_DIR", BASE_DIR / ".holdline")
DATABASES = {"default": database_settings(environment, DATA_DIR)}
REDIS_URL = environment.text("REDIS_URL")
DEBUG = environment.flag("HOLDLINE_DEBUG")
ALLOWED_HOSTS = environment.items("HOLDLINE_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Browser origins that may call /mcp, besides the server's own; such as https://tools.example.com
ALLOWED_ORIGINS = environment.items("HOLDLINE_ALLOWED_ORIGINS")
CSRF_TRUSTED_ORIGINS = ALLOWED_ORIGINS
# Address by which callers reach the server, told to clients that have no token; empty: the one they used.
PUBLIC_URL = environment.text("HOLDLINE_PUBLIC_URL").rstrip("/")
if PUBLIC_URL and not re.fullmatch(r"https?://[\w.:\[\]-]+", PUBLIC_URL):
    environment.problem("HOLDLINE_PUBLIC_URL must be an origin such as https://holdline.example.com")

# What projects without lists of their own may start, and where; None: anything, anywhere.
ALLOWED_COMMANDS = (environment.items("ALLOWED_COMMANDS") or []) if environment.text("ALLOWED_COMMANDS", "*") != "*" else None
ALLOWED_DIRECTORIES = environment.items("ALLOWED_DIRECTORIES") or None

# What a session may use where its project does not say; None: as much as its host allows.
SESSION_LIMITS = {
    "processes": environment.number("HOLDLINE_LIMIT_PROCESSES", 0) or None,
    "memory_bytes": environment.number("HOLDLINE_LIMIT_MEMORY_BYTES", 0) or None,
    "file_size_bytes": environment.number("HOLDLINE_LIMIT_FILE_SIZE_BYTES", 0) or None,
    "open_files": environment.number("HOLDLINE_LIMIT_OPEN_FILES", 0) or None,
}

# How long a program may live unless its start says otherwise.
INTERACTIVE_CMD_TIMEOUT_SECONDS = environment.seconds("INTERACTIVE_CMD_TIMEOUT_SECONDS", 300.0, at_least=1.0)
# Active background sessions of one project, and as many jobs.
MAX_BACKGROUND_SESSIONS = environment.number("MAX_BACKGROUND_SESSIONS", 32, at_least=1)
BACKGROUND_LIFETIME_SECONDS = environment.seconds("HOLDLINE_BACKGROUND_LIFETIME_SECONDS", 24 * 3600.0, at_least=1.0)
# A background session that no caller asked for in this time is ended.
BACKGROUND_IDLE_SECONDS = environment.seconds("HOLDLINE_BACKGROUND_IDLE_SECONDS", 1800.0, at_least=0.1)
# Output of one-shots, background sessions and jobs stays this long after their end.
COMMAND_RETENTION_SECONDS = environment.seconds("HOLDLINE_COMMAND_RETENTION_SECONDS", 24 * 3600.0, at_least=1.0)
# The same for interactive sessions, and for whole sessions and the audit log; 0 keeps for good.
OUTPUT_RETENTION_SECONDS = environment.seconds("HOLDLINE_OUTPUT_RETENTION_SECONDS", 30 * 24 * 3600.0)
SESSION_RETENTION_SECONDS = environment.seconds("HOLDLINE_SESSION_RETENTION_SECONDS", 90 * 24 * 3600.0)
AUDIT_RETENTION_SECONDS = environment.seconds("HOLDLINE_AUDIT_RETENTION_SECONDS", 400 * 24 * 3600.0)
# What one API token may do per minute unless it says otherwise, and wrong secrets for one token from one address; 0: any number.
STARTS_PER_MINUTE = environment.number("HOLDLINE_STARTS_PER_MINUTE", 6000)
INPUT_BYTES_PER_MINUTE = environment.number("HOLDLINE_INPUT_BYTES_PER_MINUTE", 64 * 1024 * 1024)
LOGIN_FAILURES_PER_MINUTE = environment.number("HOLDLINE_LOGIN_FAILURES_PER_MINUTE", 30)
# Calls of one API token that a process answers at the same time, those that wait among them.
MAX_CALLS_PER_TOKEN = environment.number("HOLDLINE_MAX_CALLS_PER_TOKEN", 2000, at_least=1)
# Whether a host that enrols itself is served only after an operator has let it in.
ENROLMENT_APPROVAL = environment.flag("HOLDLINE_ENROLMENT_APPROVAL", default=False)
# One-shots of one project that may run at the same time.
MAX_ONE_SHOT_COMMANDS = environment.number("HOLDLINE_MAX_ONE_SHOT_COMMANDS", 256, at_least=1)
# Proxies of our own in front that append to X-Forwarded-For; 0: the address of the connection counts.
PROXY_COUNT = environment.number("HOLDLINE_PROXY_COUNT", 0)
# How long a call may wait; clients of MCP give up at 60 s.
MAX_WAIT_SECONDS = environment.seconds("HOLDLINE_MAX_WAIT_SECONDS", 30.0, at_least=0.0)
# Doorbells may be lost: everybody who waits for one looks again after this long.
SAFETY_NET_SECONDS = environment.seconds("HOLDLINE_SAFETY_NET_SECONDS", 1.0, at_least=0.01)
# Active monitors of one project.
MAX_MONITORS = environment.number("HOLDLINE_MAX_MONITORS", 1000, at_least=1)
# Newest output kept of each session; older bytes become a gap.
MONITOR_RETAINED_BYTES = environment.number("HOLDLINE_MONITOR_RETAINED_BYTES", 16 * 1024 * 1024, at_least=limits.MAX_CHUNK_BYTES)
OUTPUT_RETAINED_BYTES = environment.number("HOLDLINE_OUTPUT_RETAINED_BYTES", 256 * 1024 * 1024, at_least=limits.MAX_CHUNK_BYTES)
# Each chain of the audit log that has grown is signed this often.
AUDIT_SIGN_SECONDS = environment.seconds("HOLDLINE_AUDIT_SIGN_SECONDS", 300.0, at_least=0.0)
SWEEP_SECONDS = environment.seconds("HOLDLINE_SWEEP_SECONDS", 5.0, at_least=0.05)
# A process that is told to stop answers who waits and sends its controllers elsewhere, within this time.
STOP_SECONDS = environment.seconds("HOLDLINE_STOP_SECONDS", 10.0, at_least=0.0)
# What a scraper of /metrics shows; without it only the machine itself may look.
METRICS_TOKEN = environment.text("HOLDLINE_METRICS_TOKEN")
LOCAL_METRICS = True
HELLO_DEADLINE_SECONDS = environment.seconds("HOLDLINE_HELLO_DEADLINE_SECONDS", limits.HELLO_DEADLINE_SECONDS, at_least=0.05)
HEARTBEAT_SECONDS = environment.seconds("HOLDLINE_HEARTBEAT_SECONDS", limits.HEARTBEAT_SECONDS, at_least=0.05)
DEAD_AFTER_SECONDS = environment.seconds("HOLDLINE_DEAD_AFTER_SECONDS", limits.DEAD_AFTER_SECONDS, at_least=0.1)
LEASE_SECONDS = environment.seconds("HOLDLINE_LEASE_SECONDS", limits.LEASE_SECONDS, at_least=0.1)
# Threads for short transactions. SQLite has one writer at a time: more threads only wait for it, and asleep.
DATABASE_THREADS = environment.number("HOLDLINE_DATABASE_THREADS", 8 if environment.text("DATABASE_URL") else 1, at_least=1)

# Runs of language models (the app "agent"). Whether this server carries them out itself; otherwise manage.py agent_worker does.
AGENT_WORKER = environment.flag("HOLDLINE_AGENT_WORKER", default=True)
AGENT_CONCURRENCY = environment.number("HOLDLINE_AGENT_CONCURRENCY", 4, at_least=1)
AGENT_POLL_SECONDS = environment.seconds("HOLDLINE_AGENT_POLL_SECONDS", 1.0, at_least=0.05)
AGENT_LEASE_SECONDS = environment.seconds("HOLDLINE_AGENT_LEASE_SECONDS", 15.0, at_least=0.5)
AGENT_MODEL = environment.text("HOLDLINE_AGENT_MODEL", "scripted:demo")
# Endpoints other than the makers' own, and the keys for either.
AGENT_OPENAI_URL = environment.text("HOLDLINE_AGENT_OPENAI_URL")
OPENAI_API_KEY = environment.text("OPENAI_API_KEY")
AGENT_ANTHROPIC_URL = environment.text("HOLDLINE_AGENT_ANTHROPIC_URL")
ANTHROPIC_API_KEY = environment.text("ANTHROPIC_API_KEY")
AGENT_MODEL_SILENCE_SECONDS = environment.seconds("HOLDLINE_AGENT_MODEL_SILENCE_SECONDS", 120.0, at_least=0.1)
AGENT_MODEL_ATTEMPTS = environment.number("HOLDLINE_AGENT_MODEL_ATTEMPTS", 6, at_least=1)
AGENT_MODEL_BACKOFF_SECONDS = environment.seconds("HOLDLINE_AGENT_MODEL_BACKOFF_SECONDS", 2.0, at_least=0.0)
AGENT_CONTEXT_TOKENS = environment.number("HOLDLINE_AGENT_CONTEXT_TOKENS", 128_000, at_least=4000)
AGENT_APPROVALS = environment.text("HOLDLINE_AGENT_APPROVALS", "ask-risky")
if AGENT_APPROVALS not in {"auto", "ask-risky", "ask-all"}:
    environment.problem("HOLDLINE_AGENT_APPROVALS must be auto, ask-risky or ask-all")
# Budgets of runs that name none of their own.
AGENT_MAX_STEPS = environment.number("HOLDLINE_AGENT_MAX_STEPS", 60, at_least=1)
AGENT_MAX_TOKENS = environment.number("HOLDLINE_AGENT_MAX_TOKENS", 2_000_000, at_least=1)
AGENT_MAX_COST_CENTS = environment.number("HOLDLINE_AGENT_MAX_COST_CENTS", 500)
AGENT_MAX_RUN_SECONDS = environment.seconds("HOLDLINE_AGENT_MAX_RUN_SECONDS", 3600.0, at_least=1.0)
AGENT_OUTPUT_BYTES = environment.number("HOLDLINE_AGENT_OUTPUT_BYTES", 16 * 1024, at_least=1024)

try:
    SECRET_KEY = environment.text("HOLDLINE_SECRET_KEY") or read_or_make_key(DATA_DIR / "secret_key", lambda: secrets.token_urlsafe(48))
    # The first key encrypts; all of them decrypt.
    ENCRYPTION_KEYS = environment.items("HOLDLINE_ENCRYPTION_KEYS") or [
        read_or_make_key(DATA_DIR / "encryption_key", lambda: Fernet.generate_key().decode())
    ]
except OSError as error:
    environment.problem(f"HOLDLINE_DATA_DIR cannot be used ({error.strerror}): {DATA_DIR}")
environment.finish()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "projects",
    "agent",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator", "UserAttributeSimilarityValidator")
]
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
# Static files come straight out of the installed packages: no collectstatic step before a start.
WHITENOISE_USE_FINDERS = True
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

CHANNEL_LAYERS = channel_layers(REDIS_URL)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "config.log_records.json_formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": environment.text("HOLDLINE_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        "django": {"handlers": [], "propagate": True, "level": "INFO"},
        "django.server": {"handlers": [], "propagate": True},
        # uvicorn gives its loggers handlers of their own before we are loaded; an access log would repeat query strings.
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.error": {"handlers": [], "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}
