"""Programs that draw on the screen (editor, pager, menu) are driven by keys."""

from pathlib import Path

from tests.support.accounts import requires
from tests.support.mcp.client import Caller
from tests.support.stack import Stack
from tests.support.waiting import await_until


async def test_vim_inserts_saves_and_quits_by_keys(stack: Stack, tmp_path: Path) -> None:
    requires("vim")
    note = tmp_path / "note.txt"
    async with stack.caller() as caller:
        editor = await caller.start(f"vim -u NONE -N {note}")
        assert (editor.result["state"], editor.kind) == ("awaiting_input", "screen")
        await editor.send("ihello from the editor")
        assert "hello from the editor" in await editor.screen()
        assert "INSERT" in await editor.screen()
        await editor.keys("escape")
        assert editor.result["state"] == "awaiting_input"
        assert "INSERT" not in await editor.screen()
        await editor.send(":wq")
        await editor.keys("enter")
        await editor.until("exited")
        assert editor.result["exit_code"] == 0
    assert note.read_text() == "hello from the editor\n"


async def test_less_pages_through_a_long_file(stack: Stack, tmp_path: Path) -> None:
    requires("less")
    text = tmp_path / "long.txt"
    text.write_text("".join(f"row {number:04d}\n" for number in range(2000)))
    async with stack.caller() as caller:
        pager = await caller.start(f"less {text}")
        assert pager.result["state"] == "awaiting_input"
        assert pager.kind in {"key", "screen"}
        assert "row 0000" in await pager.screen()
        await pager.keys("space")
        assert "row 0030" in await pager.screen()
        await pager.send("G")
        assert pager.result["state"] == "awaiting_input"
        assert "row 1999" in await pager.screen()
        await pager.send("q")
        assert (pager.result["state"], pager.result["exit_code"]) == ("exited", 0)


async def test_a_menu_is_answered_with_arrow_keys(stack: Stack, tmp_path: Path) -> None:
    requires("whiptail")
    choice = tmp_path / "choice"
    async with stack.caller() as caller:
        menu = await caller.start(
            f"bash -c 'whiptail --menu Pick 15 40 3 a Alpha b Beta c Gamma 2>{choice}'"
        )
        assert menu.result["state"] == "awaiting_input"
        assert menu.kind in {"key", "screen"}
        assert "Beta" in await menu.screen()
        await menu.keys("down")
        assert menu.result["state"] == "awaiting_input"
        await menu.keys("enter")
        await menu.until("exited")
        assert menu.result["exit_code"] == 0
    assert choice.read_text() == "b"


async def _resize(stack: Stack, caller: Caller, session_id: str, rows: int) -> None:
    """Resize, and return once the host has done it; the call itself waits two seconds at most."""
    await caller.call("resize_session", session_id=session_id, rows=rows, cols=60)
    unsettled = (
        "SELECT 1 FROM projects_controllercommand WHERE session_id = ? AND settled_at IS NULL"
    )
    await await_until(
        lambda: not stack.database.rows(unsettled, session_id.replace("-", "")),
        90,
        "the host to have resized",
    )


async def test_after_a_resize_the_turn_ends_when_the_program_has_drawn_again(
    stack: Stack, tmp_path: Path
) -> None:
    requires("vim")
    text = tmp_path / "text"
    text.write_text("".join(f"line {number}\n" for number in range(1, 100)))
    async with stack.caller() as caller, caller.terminal(f"vim -u NONE {text}") as editor:
        for rows in (10, 40):
            await _resize(stack, caller, editor.session_id, rows)
            await editor.send("", view="screen")
            assert editor.result["state"] == "awaiting_input"
            assert editor.result["output"].splitlines()[: rows - 1] == [
                f"line {number}" for number in range(1, rows)
            ]
        await editor.send(":q!\n")


async def test_a_program_that_ignores_a_resize_still_waits(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal("cat") as session:
        await _resize(stack, caller, session.session_id, 10)
        await session.send("")
        assert (session.result["state"], session.evidence) == ("awaiting_input", "kernel")
