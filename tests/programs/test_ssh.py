"""ssh to a loopback sshd asks for the host key and the password, then runs the far shell."""

from tests.programs.conftest import FarHost
from tests.support.stack import Stack


async def test_host_key_question_then_password_then_a_command_in_the_far_shell(
    stack: Stack, far_host: FarHost
) -> None:
    async with stack.caller() as caller, caller.terminal(far_host.command) as session:
        assert (session.result["state"], session.kind) == ("awaiting_input", "line")
        assert "fingerprint" in session.result["output"]
        await session.send("yes\n")
        assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
        await session.send(far_host.account.password + "\n")
        await session.until("awaiting_input")
        assert session.result["prompt"]["text"].endswith("$ ")
        await session.send("echo $((40 + 2)) from $USER\n")
        await session.until("awaiting_input")
        assert f"42 from {far_host.account.name}" in session.seen
        await session.send("exit\n")
        await session.until("exited")
        assert session.result["exit_code"] == 0


async def test_a_busy_far_command_is_not_waiting(stack: Stack, far_host: FarHost) -> None:
    async with (
        stack.caller() as caller,
        caller.terminal(f"{far_host.command} 'echo building; sleep 3; exit 5'") as session,
    ):
        assert "fingerprint" in session.seen
        await session.send("yes\n")
        await session.send(far_host.account.password + "\n", wait_seconds=2.5)
        assert session.result["state"] == "running"
        await session.until("exited")
        assert session.result["exit_code"] == 5
