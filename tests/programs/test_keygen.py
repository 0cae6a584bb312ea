"""ssh-keygen asks for a file name, then twice for a passphrase."""

from pathlib import Path

from tests.support.accounts import requires
from tests.support.stack import Stack


async def test_ssh_keygen_asks_for_a_file_and_a_passphrase_twice(
    stack: Stack, tmp_path: Path
) -> None:
    requires("ssh-keygen")
    key = tmp_path / "key"
    async with stack.caller() as caller:
        session = await caller.start("ssh-keygen -t ed25519")
        assert (session.kind, session.evidence) == ("line", "kernel")
        await session.send(f"{key}\n")
        for question in ("passphrase", "again"):
            assert session.kind == "secret"
            assert question in session.result["prompt"]["text"]
            await session.send("a long enough phrase\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
    assert "ENCRYPTED" in key.read_text() or "OPENSSH PRIVATE KEY" in key.read_text()
