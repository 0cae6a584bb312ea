"""Settings of a server that others reach: https only, and no setting that suits one machine alone.

It stands behind a TLS proxy that sets X-Forwarded-Proto itself, and drops what clients send under that name.
"""

from config.production_rules import report_unsafe
from config.settings import environment

# Before the rest is read, which ends with one error naming everything.
report_unsafe(environment)

from config.settings.base import *  # noqa: E402, F403

DEBUG = False
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = True
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
# A proxy speaks for everybody; without HOLDLINE_METRICS_TOKEN there is no /metrics.
LOCAL_METRICS = False
