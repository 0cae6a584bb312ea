"""The prompt a person picks to have a command driven."""

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_adapter.prompts import DRIVE
from mcp_adapter.server import build_server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_prompt_tells_how_to_drive_the_command(mode: str) -> None:
    async with Client(build_server(), mode=mode) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert [(argument.name, argument.required) for argument in prompt.arguments or ()] == [
            ("command", True),
            ("goal", False),
            ("controller", False),
        ]
        got = await client.get_prompt(
            DRIVE, {"command": "ssh-keygen", "goal": "no passphrase", "controller": "web"}
        )
        text = got.messages[0].content.text
        assert all(
            part in text
            for part in (
                "start_interactive_command on the host web",
                "ssh-keygen",
                "no passphrase",
                "one at a time",
            )
        )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("other", {"command": "x"}),
        (DRIVE, {}),
        (DRIVE, {"command": " "}),
        (DRIVE, {"command": "x", "aim": "y"}),
    ],
)
async def test_a_prompt_that_cannot_be_made_says_why(name: str, arguments: dict[str, str]) -> None:
    async with Client(build_server()) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name, arguments)
        assert refused.value.error.code == -32602
