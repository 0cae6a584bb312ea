"""Only wrong codes use up the rate of guesses, and what fails uses up neither rate nor code."""

import asyncio
import json
from typing import Any

import pytest
from django.db import connection
from django.test import AsyncClient

from projects.enrolment.codes import enrolment_code_create, enrolment_key_create
from projects.models import Controller, EnrolmentCode, Project, RateMeter
from projects.storage.access import in_database

pytestmark = pytest.mark.django_db(transaction=True)

_WRONG = f"enr_{'0' * 16}_{'A' * 43}"


async def _post(**body: object) -> int:
    answer = await AsyncClient().post(
        "/controllers/enrol", json.dumps(body), content_type="application/json"
    )
    return answer.status_code


async def test_right_codes_of_many_hosts_at_once_are_no_guesses(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    hosts = 8
    project = await in_database(Project.objects.create, name="acme")
    _, key = await in_database(lambda: enrolment_key_create(project=project, hosts=hosts, hours=1))
    answers = await asyncio.gather(*(_post(code=key, name=f"web-{one}") for one in range(hosts)))
    assert answers == [200] * hosts


async def test_wrong_codes_at_once_are_counted_each(settings: Any) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    answers = await asyncio.gather(*(_post(code=_WRONG) for _ in range(4)))
    assert sorted(answers) == [403, 429, 429, 429]


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.sqlite
async def test_a_rate_that_cannot_be_given_back_loses_no_credential() -> None:
    project = await in_database(Project.objects.create, name="acme")
    _, code = await in_database(lambda: enrolment_code_create(project=project, name="web-1"))
    await in_database(
        _execute,
        "CREATE TRIGGER no_refund BEFORE UPDATE ON projects_ratemeter WHEN NEW.free_at < "
        "OLD.free_at BEGIN SELECT RAISE(ABORT, 'no refund'); END",
    )
    try:
        with pytest.raises(Exception, match="no refund"):
            await _post(code=code)
    finally:
        await in_database(_execute, "DROP TRIGGER no_refund")
    assert not await in_database(EnrolmentCode.objects.filter(used_at__isnull=False).exists)
    assert not await in_database(RateMeter.objects.filter(key__startswith="enrol").exists)
    assert await _post(code=code) == 200
    assert await in_database(Controller.objects.count) == 1
