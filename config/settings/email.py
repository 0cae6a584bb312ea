"""Django's e-mail settings, from one URL such as ``smtp+tls://user:password@mail.example.com``."""

from typing import Any
from urllib.parse import unquote, urlsplit

_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def email_settings(url: str) -> dict[str, Any]:
    """The settings of Django's e-mail backend; without a URL the mail server of this machine.

    Raises ValueError with the end of a sentence that begins "HOLDLINE_EMAIL_URL must be".
    """
    if not url:
        return {}
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("a URL such as smtp+tls://user:password@mail.example.com:587")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or _PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
