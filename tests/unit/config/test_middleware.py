"""Headers that every page carries."""

import pytest
from django.test import AsyncClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_pages_carry_a_content_security_policy(async_client: AsyncClient) -> None:
    response = await async_client.get("/admin/login/")
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]
