"""Settings of a server on one machine: SQLite, in-memory channel layer, loopback.

``config.settings.production`` hardens them. What the rest of the code uses is declared in
``projects.conf.server`` and ``agent.conf``; what only Django uses is declared here.
"""

import secrets
from pathlib import Path

from cryptography.fernet import Fernet

from agent.conf import Conf as AgentConf
from config.settings import environment
from config.settings.channel_layer import RedisAddress, channel_layers
from config.settings.databases import SQLITE_ENGINE, database_settings
from config.settings.email import email_settings
from config.settings.key_file import read_or_make_key
from config.settings.static_names import static_address
from projects.conf import Conf as ServerConf
from projects.conf.setting import Directory, Flag, Level, Text

BASE_DIR = Path(__file__).resolve().parent.parent.parent

DATA_DIR = environment.read(
    Directory(
        "HOLDLINE_DATA_DIR",
        BASE_DIR / ".holdline",
        "directory of the SQLite database and of the two keys that the server makes. Keep it "
        "private",
        shown="`.holdline/` in the checkout",
    )
)
DATABASES = {"default": database_settings(environment, DATA_DIR)}
REDIS_URL = environment.read(
    RedisAddress(
        "REDIS_URL",
        "",
        "`redis://host:6379/0` carries doorbells between server processes",
        shown="none: doorbells in memory, one server process",
    )
)
CHANNEL_LAYERS = channel_layers(REDIS_URL)
DEBUG = environment.read(
    Flag("HOLDLINE_DEBUG", False, "Django's debug pages. Never set it in production")
)
_log_level = environment.read(
    Level("HOLDLINE_LOG_LEVEL", "INFO", "level of the JSON log on stderr")
)
SECRET_KEY = environment.read(
    Text(
        "HOLDLINE_SECRET_KEY",
        "",
        "Django's signing key",
        shown="made on first use, in the data directory",
    )
)
_email_url = environment.read(
    Text(
        "HOLDLINE_EMAIL_URL",
        "",
        "mail server for [messages](../howto/attention.md) by e-mail, such as "
        "`smtp+tls://user:password@mail.example.com:587` (`smtp`, `smtp+tls` or `smtps`)",
        shown="none: port 25 of this machine",
    )
)
DEFAULT_FROM_EMAIL = environment.read(
    Text("HOLDLINE_EMAIL_FROM", "holdline@localhost", "sender of these e-mails")
)
try:
    globals().update(email_settings(_email_url))
except ValueError as error:
    environment.problem(f"HOLDLINE_EMAIL_URL must be {error}")
LOCAL_METRICS = True

_values = environment.read_all(ServerConf) | environment.read_all(AgentConf)
# SQLite has one writer at a time: more threads would only sleep until it is their turn.
_values["DATABASE_THREADS"] = _values["DATABASE_THREADS"] or (
    1 if DATABASES["default"]["ENGINE"] == SQLITE_ENGINE else 4
)
_values["BUNDLE_DIR"] = _values["BUNDLE_DIR"] or str(DATA_DIR / "bundles")
try:
    SECRET_KEY = SECRET_KEY or read_or_make_key(
        DATA_DIR / "secret_key", lambda: secrets.token_urlsafe(48)
    )
    _values["ENCRYPTION_KEYS"] = _values["ENCRYPTION_KEYS"] or (
        read_or_make_key(DATA_DIR / "encryption_key", lambda: Fernet.generate_key().decode()),
    )
except OSError as error:
    environment.problem(f"HOLDLINE_DATA_DIR cannot be used ({error.strerror}): {DATA_DIR}")
environment.finish()
# Django takes the variables of this module in capitals as its settings.
globals().update(_values)
CSRF_TRUSTED_ORIGINS = list(_values["ALLOWED_ORIGINS"])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    # Before the static files, whose runserver would be found instead of ours.
    "projects",
    "agent",
    "backup",
    "console",
    "django.contrib.staticfiles",
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
                "console.parts.header.header",
            ]
        },
    }
]
LOGIN_URL = "console:login"
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
        "UserAttributeSimilarityValidator",
    )
]
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = "config.formats"
STATIC_URL = static_address(BASE_DIR)
# Static files come straight out of the installed packages: no collectstatic step before a start.
WHITENOISE_USE_FINDERS = True
WHITENOISE_IMMUTABLE_FILE_TEST = f"^/{STATIC_URL}"
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "console.login.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
# The largest body of a request, to any address: ``config.edge`` refuses more while it comes. The
# largest one that means anything is an input of 96 KiB, which JSON may write six times as long; the
# longest form of the admin is far smaller.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "config.log_records.json_formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": _log_level},
    "loggers": {
        "django": {"handlers": [], "propagate": True, "level": "INFO"},
        "django.server": {"handlers": [], "propagate": True},
        # uvicorn gives its loggers handlers of their own before we are loaded; an access log would
        # repeat query strings.
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.error": {"handlers": [], "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}
