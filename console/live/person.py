"""The person behind a connection, and their rights, read anew each time.

The rights are those of the pages (``console.parts.access``). A person who may not see a session is
answered as if it did not exist. The pages of one login are checked at the same moment, with one
read.
"""

import asyncio
import zlib
from collections.abc import Iterable
from http.cookies import CookieError
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie
from django.http.request import validate_host

from console.parts.access import SEE_SCREENS, SEE_SESSIONS, TYPE, is_staff
from projects.admin.parts.access import actor_of, projects_of, sees_every_project
from projects.errors.base import Forbidden
from projects.storage.access import in_database

Headers = Iterable[tuple[bytes, bytes]]


class LoginEnded(Exception):
    """The login is over: it expired, was ended, or its user may not sign in any more."""


class Person(NamedTuple):
    """A signed-in member of staff. ``projects`` is None for somebody who sees every project."""

    user_id: int
    actor: str
    projects: frozenset[UUID] | None
    may_list: bool
    may_read: bool
    may_type: bool

    def sees(self, project_id: UUID) -> bool:
        """True if the person sees the sessions of this project."""
        return self.may_list and (self.projects is None or project_id in self.projects)

    def require_list(self) -> None:
        """Raises Forbidden for somebody who may not see the board."""
        if not self.may_list:
            raise Forbidden("you may not see sessions")

    def require_typing(self) -> None:
        """Raises Forbidden for somebody who may not take sessions over."""
        if not (self.may_read and self.may_type):
            raise Forbidden("you may not take sessions over")


def person_of(session_key: str) -> Person:
    """The person of a login, as the database has it now. Raises LoginEnded."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # This compares the hash of the password, too: a new password ends all other logins.
    user: Any = get_user(request)
    request.user = user
    if not is_staff(request):
        raise LoginEnded
    projects = None
    if not sees_every_project(request):
        projects = frozenset(projects_of(request).values_list("pk", flat=True))
    return Person(
        user_id=user.pk,
        actor=actor_of(request),
        projects=projects,
        may_list=user.has_perm(SEE_SESSIONS),
        may_read=user.has_perm(SEE_SESSIONS) and user.has_perm(SEE_SCREENS),
        may_type=user.has_perm(TYPE),
    )


class Checks:
    """The checks of logins that go on in one event loop."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Person]] = {}

    async def person_of(self, session_key: str) -> Person:
        """The person of a login, from a read that goes on, or from a new one. Raises LoginEnded."""
        task = self._running.get(session_key)
        if task is None:
            task = asyncio.create_task(in_database(person_of, session_key), name="check of a login")
            self._running[session_key] = task
            task.add_done_callback(lambda done: self._end(session_key, done))
        # A page that goes away does not end the check of the others.
        return await asyncio.shield(task)

    def _end(self, session_key: str, task: asyncio.Task[Person]) -> None:
        del self._running[session_key]
        if not task.cancelled():
            # The pages may all be gone: then nobody else hears of the error.
            task.exception()


_checks: "WeakKeyDictionary[asyncio.AbstractEventLoop, Checks]" = WeakKeyDictionary()


def checks() -> Checks:
    """The checks of the running event loop."""
    return _checks.setdefault(asyncio.get_running_loop(), Checks())


def seconds_to_check(session_key: str, period: float) -> float:
    """The time to the next check of a login, which is at the same moment for all of its pages.

    The checks of different logins are spread over the period.
    """
    phase = zlib.crc32(session_key.encode()) / 2**32
    return (phase * period - asyncio.get_running_loop().time()) % period or period


def session_key_of(headers: Headers) -> str | None:
    """The key of the login that the cookie of a handshake names."""
    cookies = b"; ".join(value for name, value in headers if name == b"cookie")
    try:
        return parse_cookie(cookies.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None


def is_from_own_page(headers: Headers) -> bool:
    """True if a page of this server opened the connection, by an allowed name of the server.

    A page of another site would bring the cookie, too. A host that the proxy renames has to be
    passed on, as for the forms of Django.
    """
    found: dict[bytes, bytes] = dict(headers)
    host = found.get(b"host", b"").decode("latin-1").lower()
    try:
        origin = urlsplit(found.get(b"origin", b"").decode("latin-1").lower())
    except ValueError:
        return False
    is_allowed = validate_host(_without_port(host), settings.ALLOWED_HOSTS)
    return bool(host) and origin.scheme in _SCHEMES and origin.netloc == host and is_allowed


_SCHEMES: Final = ("http", "https")


def _without_port(host: str) -> str:
    return host if host.endswith("]") else host.rsplit(":", 1)[0]
