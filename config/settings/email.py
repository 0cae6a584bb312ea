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
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        # What follows the port is the rest of a password that has one of / ? # in it.
        is_whole = parts.path in {"", "/"} and not parts.query and not parts.fragment
    except ValueError:
        # The error of the library repeats a piece of the URL, which may be one of the password.
        host = None
    if host is None or not is_whole or parts.scheme not in _PORTS:
        raise ValueError(
            "a URL such as smtp+tls://user:password@mail.example.com:587, with %2F, %3F, %23 and "
            "%40 for / ? # and @ in the password"
        )
    return {
        "EMAIL_HOST": host,
        "EMAIL_PORT": port or _PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
