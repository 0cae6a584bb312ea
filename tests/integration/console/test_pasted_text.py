"""What is pasted is shown as it is before it is typed, wherever it holds more than it seems to."""

import json
import subprocess

from console.parts.emulator import emulator_command
from tests.support.stack import PROJECT_ROOT

LIVE = PROJECT_ROOT / "console/static/console/live"
SCRIPT = """
const [{ needsLook, lookedAt }, { Keyboard }] = await Promise.all(
  ["pasted.js", "keyboard.js"].map((name) => import(`${process.argv[1]}/${name}`)));
const texts = JSON.parse(process.argv[2]);
const keyboard = new Keyboard({ send() {} });
keyboard.isHeld = true;
console.log(JSON.stringify([
  texts.map((text) => [needsLook(text), lookedAt(text)]),
  ["a".repeat(150000), "b".repeat(60000), "c"].map((text) => keyboard.type(text)),
]));
"""


def _told(*texts: str) -> tuple[list[list[object]], list[bool]]:
    node = (emulator_command() or ("node", "", ""))[-3]
    command = [node, "--input-type=module", "-e", SCRIPT, str(LIVE), json.dumps(texts)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    looks, typed = json.loads(answer.stdout)
    return looks, typed


def test_a_person_looks_at_whatever_a_terminal_may_act_on() -> None:
    looks, _ = _told("ls -l\t/", "a\r\nb", "rm x\x0f", "\x9b201~", "a\u202eb\n", "x" * 5003)
    assert looks == [
        [False, "ls -l\t/"],
        [True, "a\nb"],
        [True, "rm x[U+000F]"],
        [True, "[U+009B]201~"],
        [True, "a[U+202E]b\n"],
        [False, "x" * 5000 + "\n[… and 3 more characters that are not shown]"],
    ]


def test_text_that_has_no_room_is_typed_not_even_in_part() -> None:
    _, typed = _told()
    assert typed == [True, False, True]
