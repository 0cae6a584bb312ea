"""What real programs ask for, as an agent is told: the answers, and what Enter alone gives."""

import shlex
import sys

import pytest

from tests.support.accounts import requires
from tests.support.stack import Stack

_MENU = """
import sys, termios, tty
tty.setcbreak(0)
rows = ["npm", "yarn", "pnpm"]
def draw(at):
    for row, label in enumerate(rows):
        print("\\r\\x1b[K" + ("\\x1b[36m\\u276f " if row == at else "  ") + label + "\\x1b[0m")
print("? Which package manager? (Use arrow keys)\\x1b[?25l")
draw(0)
sys.stdout.flush()
sys.stdin.read(1)
print("\\x1b[3A", end="")
draw(2)
sys.stdout.flush()
sys.stdin.read(1)
print("\\x1b[?25h")
"""


def _python(program: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (
            "bash -c 'read -p \"Weiter? [J/n] \" a'",
            {"expects": "yes_no", "choices": ["J", "n"], "on_enter": "J"},
        ),
        (
            "bash -c 'select a in start stop status; do break; done'",
            {"expects": "choice", "choices": ["1", "2", "3"]},
        ),
        ("bash -c 'touch asked; rm -i asked'", {"expects": "yes_no"}),
        (
            'bash -c \'echo "Only yes counts."; read -p "Type YES to continue: " a\'',
            {"expects": "confirmation_word", "choices": ["YES"]},
        ),
        ("bash -c 'read -s -p \"Proceed? [y/N] \" a'", {"expects": "secret"}),
        ("bash -c 'read -p \"Name: \" a'", {}),
        ("bash --norc -i", {}),
    ],
)
async def test_a_program_s_question_is_told(
    stack: Stack, command: str, asked: dict[str, object]
) -> None:
    async with stack.caller() as caller:
        session = await caller.start(command)
        prompt = session.result["prompt"]
        told = {key: prompt[key] for key in ("expects", "choices", "on_enter") if key in prompt}
        assert told == asked


async def test_a_key_generator_asks_for_a_path_and_then_for_yes_or_no(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("bash -c 'touch taken; ssh-keygen -t ed25519 -N \"\"'")
        assert session.result["prompt"]["expects"] == "path"
        assert session.result["prompt"]["on_enter"].endswith("/id_ed25519")
        await session.send("taken\n")
        assert session.result["prompt"]["expects"] == "yes_no"
        assert session.result["prompt"]["choices"] == ["y", "n"]


async def test_a_drawn_menu_tells_its_rows_and_the_marked_one(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(_python(_MENU))
        assert session.result["prompt"]["choices"] == ["npm", "yarn", "pnpm"]
        assert session.result["prompt"]["on_enter"] == "npm"
        await session.send("j")
        assert session.result["prompt"]["choices"] == ["npm", "yarn", "pnpm"]
        assert session.result["prompt"]["on_enter"] == "pnpm"


@pytest.mark.parametrize("view", ["text", "screen"])
async def test_a_box_of_buttons_asks_for_yes_or_no(stack: Stack, view: str) -> None:
    requires("whiptail")
    async with stack.caller() as caller:
        session = await caller.start("whiptail --defaultno --yesno 'Delete the partition?' 8 50")
        await session.send("", view=view)
        prompt = session.result["prompt"]
        assert (prompt["expects"], prompt["choices"]) == ("yes_no", ["Yes", "No"])
        assert prompt["on_enter"] == "No"
