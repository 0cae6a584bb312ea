"""Settings of a server that others reach: https only, and no default that suits one machine alone.

The server runs behind a TLS proxy that sets X-Forwarded-Proto, and drops any value of that header
that a client sends.
"""

from config.settings import environment
from config.settings.production_rules import report_unsafe

# Before ``base``, whose import ends with one error that names every problem.
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
# All requests come from the proxy's address; without HOLDLINE_METRICS_TOKEN there is no /metrics.
LOCAL_METRICS = False
