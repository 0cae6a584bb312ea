"""A call that is answered without the SDK, and what its client says of itself."""

from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_adapter.plain_call import PlainCall


@pytest.mark.parametrize(
    ("said", "shows"),
    [
        ({"elicitation": {"url": {}}}, True),
        ({"elicitation": {"form": {}}}, False),
        ({"elicitation": "url"}, False),
        ({"elicitation": None}, False),
        ("url", False),
        (["url"], False),
        (7, False),
        (None, False),
    ],
)
def test_a_client_shows_pages_only_if_it_says_so_in_the_right_form(said: Any, shows: bool) -> None:
    for version, can in (
        (max(MODERN_PROTOCOL_VERSIONS), shows),
        (max(HANDSHAKE_PROTOCOL_VERSIONS), False),
    ):
        meta = {CLIENT_CAPABILITIES_META_KEY: said}
        call = PlainCall(request_id=1, name="x", arguments=None, version=version, meta=meta)
        assert call.shows_pages is can
