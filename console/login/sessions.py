"""The store of logins: Django's own, which looks up nothing but keys that it may have made."""

from typing import Any, Final

from django.contrib.sessions.backends.db import SessionStore as _DatabaseStore

_MIN_CHARS: Final = 8
"""No shorter key is taken, as in Django's store."""


class SessionStore(_DatabaseStore):
    """The logins in the database. A cookie may hold anything, such as a NUL character."""

    def _validate_session_key(self, key: Any) -> bool:
        is_plain = isinstance(key, str) and key.isascii() and key.isalnum()
        return is_plain and len(key) >= _MIN_CHARS
