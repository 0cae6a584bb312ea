"""Many logins at once on a real server.

No more passwords are tried than the limit allows. Every attempt is answered and recorded.
"""

import asyncio
import re
import time
from collections.abc import Iterator

import httpx2
import pytest

from tests.support.management import manage
from tests.support.stack import Stack, running_stack

_AT_ONCE = 40
_PER_MINUTE = 4


@pytest.fixture
def own_stack() -> Iterator[Stack]:
    with running_stack(
        server_environment={"HOLDLINE_LOGIN_FAILURES_PER_MINUTE": str(_PER_MINUTE)}
    ) as started:
        yield started


async def test_parallel_password_guesses_stay_within_the_rate(own_stack: Stack) -> None:
    maker = (
        "from django.contrib.auth.models import User; User.objects.create_superuser('root', "
        "password='right')"
    )
    assert manage(own_stack, "shell", "-c", maker).returncode == 0
    page = f"{own_stack.url.removesuffix('/mcp')}/admin/login/"
    async with httpx2.AsyncClient(timeout=60) as client:
        (token,) = re.findall(
            r'name="csrfmiddlewaretoken" value="(\w+)"', (await client.get(page)).text
        )

        async def attempt(password: str) -> int:
            form = {"username": "root", "password": password, "csrfmiddlewaretoken": token}
            return (await client.post(page, data=form, headers={"Referer": page})).status_code

        began = time.monotonic()
        answers = await asyncio.gather(*(attempt(f"wrong {number}") for number in range(_AT_ONCE)))
        # The rate allows more attempts again while these are being answered.
        may_try = _PER_MINUTE + (time.monotonic() - began) * _PER_MINUTE / 60 + 1
        assert set(answers) <= {200, 429}
        assert 1 <= answers.count(200) <= may_try
    rows = dict(
        own_stack.database.rows(
            "SELECT action, count(*) FROM projects_auditevent WHERE action LIKE 'login%' GROUP BY "
            "action"
        )
    )
    assert rows == {"login.failed": answers.count(200), "login.throttled": answers.count(429)}
