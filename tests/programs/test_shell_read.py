"""The shell's own questions, shown and hidden: hidden answers are recorded nowhere."""

import pytest

from tests.support.databases.live_files import contents_below
from tests.support.stack import Stack
from tests.support.waiting import await_until

_ASKS = """bash -c 'read -p "Name: " n; read -s -p "Password: " p; echo; echo hello $n'"""
_HIDDEN = "S3same-0pen-d00r"


@pytest.mark.requirement(
    "S3.R1.1", "S3.R2.1", "S3.R2.2", "S3.R2.3", "S3.R2.4", "S3.D1.4", "S3.D1.5"
)
async def test_a_name_then_a_hidden_password(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(_ASKS)
        assert (session.result["state"], session.kind, session.evidence) == (
            "awaiting_input",
            "line",
            "kernel",
        )
        assert session.result["prompt"]["text"] == "Name: "
        await session.send("ada\n")
        assert (session.kind, session.evidence) == ("secret", "kernel")
        assert session.result["prompt"]["text"] == "Password: "
        await session.send(_HIDDEN + "\n")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
        assert session.result["output"].strip() == "hello ada"


async def test_input_at_a_hidden_question_is_recorded_nowhere(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(_ASKS)
        await session.send("ada\n")
        await session.send(_HIDDEN + "\n")
        assert session.result["state"] == "exited"
        settled = (
            "SELECT count(*) FROM projects_controllercommand WHERE session_id = ? AND "
            "settled_at IS NULL"
        )
        await await_until(
            lambda: stack.database.rows(settled, session.session_id.replace("-", ""))[0][0] == 0,
            90,
            "the input to be acknowledged",
        )
        kept = [path for path, content in contents_below(stack.root) if _HIDDEN.encode() in content]
        assert kept == []


async def test_a_key_question_takes_one_key(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            """bash -c 'read -n1 -s -p "Press any key" k; echo; echo got $k'"""
        )
        assert session.result["state"] == "awaiting_input"
        assert session.kind in {"key", "secret"}
        await session.send("x")
        assert session.result["output"].strip() == "got x"
        assert session.result["exit_code"] == 0


async def test_typed_ahead_lines_answer_every_question_once(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            """bash -c 'for i in 1 2 3; do read -p "q$i: " a; echo "<$a>"; done'"""
        )
        await session.send("one\ntwo\nthree\n")
        await session.until("exited")
        assert [session.seen.count(f"<{word}>") for word in ("one", "two", "three")] == [1, 1, 1]


async def test_text_beyond_ascii_survives_the_round_trip(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("""bash -c 'read -p "naïve 日本語 🦊? " a; echo "«$a»"'""")
        assert session.result["prompt"]["text"] == "naïve 日本語 🦊? "
        await session.send("Grüße 🦊\n")
        assert "«Grüße 🦊»" in session.result["output"]
