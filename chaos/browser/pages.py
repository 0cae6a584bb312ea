"""A person at the pages of the console: signs in, and sends forms, as a browser does."""

import asyncio
import re
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.cookies import SimpleCookie
from typing import Final

_FORM: Final = "application/x-www-form-urlencoded"
_TOKEN: Final = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_SECONDS: Final = 45.0


class NoPageError(Exception):
    """A page did not come. Of a form that was sent, nothing is known."""


@dataclass(frozen=True)
class Page:
    """The answer to a request of a browser: its status and its text."""

    status: int
    text: str


class Browser:
    """The pages of one person, who stays signed in: the cookies are all that a browser keeps."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self._cookies: dict[str, str] = {}

    @property
    def cookie(self) -> str:
        """The value of the header ``Cookie``."""
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    async def sign_in(self, name: str, password: str) -> None:
        """Sign in with a password. Raises NoPageError, and ValueError if the login is refused."""
        page = await self.submit("/login/", username=name, password=password)
        if page.status != 302:
            raise ValueError(f"the login was answered with {page.status}")

    async def get(self, path: str) -> Page:
        """Open a page. Raises NoPageError."""
        return await asyncio.to_thread(self._exchange, "GET", path, {})

    async def submit(self, path: str, *, form: str = "", **fields: str) -> Page:
        """Send the form of the page ``form``, which is ``path`` itself by default.

        Raises NoPageError.
        """
        found = _TOKEN.search((await self.get(form or path)).text)
        if found is None:
            raise NoPageError(f"no form on {form or path}")
        sent = {**fields, "csrfmiddlewaretoken": found[1]}
        return await asyncio.to_thread(self._exchange, "POST", path, sent)

    def _exchange(self, method: str, path: str, fields: dict[str, str]) -> Page:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        headers = {"Cookie": self.cookie, "Origin": self.origin}
        body = urllib.parse.urlencode(fields) if fields else None
        if body is not None:
            headers["Content-Type"] = _FORM
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            for line in response.headers.get_all("Set-Cookie", []):
                self._cookies |= {key: each.value for key, each in SimpleCookie(line).items()}
            return Page(response.status, response.read().decode(errors="replace"))
        except (OSError, HTTPException) as error:
            raise NoPageError(type(error).__name__) from error
        finally:
            connection.close()


@dataclass(frozen=True)
class People:
    """The people of a run: an operator who is signed in, and callers who need their word.

    ``manage`` runs a command of ``manage.py`` and returns what it printed, or raises RuntimeError.
    """

    operator: Browser
    held_token: str
    manage: Callable[..., Awaitable[str]]
