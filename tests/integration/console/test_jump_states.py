"""A screen that is kept and given back goes on as the terminal that drew it, whatever it drew.

The terminal that is given the screens is one and the same, as in the player: each jump leaves it in
the middle of something.
"""

import base64
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from console.parts.emulator import emulator_command
from tests.support.stack import PROJECT_ROOT

STATIC = PROJECT_ROOT / "console/static/console"
JUMPS = 30
TEXTS = (
    "hello ",
    "é",
    "漢字",
    "e\u0301",
    "\u2500\u2502",
    "\t",
    "\r\n",
    "\n",
    "\x08",
    "\x0e",
    "\x0f",
)
PARAMETERS = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    10,
    12,
    24,
    25,
    30,
    38,
    48,
    47,
    66,
    80,
    1000,
    1006,
    1049,
    2004,
)
FINALS = "ABCDEFGHJKLMPSTXZ@bdfghlmnrsuq`"
ESCAPES = ("7", "8", "D", "M", "E", "H", "(0", "(B", ")0", "*B", "n", "o", "=", ">", "#8", "c")
STRINGS = ("]0;title\x07", "]4;1;rgb:11/22/33\x1b\\", "P$qm\x1b\\", "P+q544e\x1b\\")
SCRIPT = """
import { readFileSync } from "node:fs";
const [{ Unicode11Addon }, { Terminal }, { RESET, isAtRest, restore, stateOf }] = await Promise.all(
  ["vendor/addon-unicode11.mjs", "vendor/xterm-headless.mjs", "screens/state.mjs"].map((name) =>
    import(`${process.argv[2]}/${name}`)));
const { data, jumps } = JSON.parse(readFileSync(0));
const output = Buffer.from(data, "base64");
function made() {
  const terminal = new Terminal({ rows: 24, cols: 80, scrollback: 2000, allowProposedApi: true });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  return terminal;
}
const written = (terminal, part) => new Promise((done) => { terminal.write(part, done); });
const stated = (terminal) => JSON.parse(JSON.stringify(stateOf(terminal)));
const jumping = made();
for (let [place, to] of jumps) {
  const [keeps, plays] = [made(), made()];
  await written(keeps, output.subarray(0, place));
  while (!isAtRest(keeps)) await written(keeps, output.subarray(place, ++place));
  await written(jumping, RESET);
  restore(jumping, stated(keeps));
  await written(jumping, output.subarray(place, to));
  await written(plays, output.subarray(0, to));
  const [one, other] = [stated(jumping), stated(plays)];
  const differ = Object.keys(other).filter((name) =>
    JSON.stringify(one[name]) !== JSON.stringify(other[name]));
  console.log(JSON.stringify([place, to, differ]));
}
"""


def _drawn(dice: random.Random) -> bytes:
    """Output with everything that a terminal understands but links, which are not kept."""
    drawn = bytearray()
    while len(drawn) < 15_000:
        kind = dice.random()
        if kind < 0.55:
            piece = dice.choice(TEXTS)
        elif kind < 0.87:
            numbers = dice.choices(PARAMETERS, k=dice.randint(0, 3))
            piece = f"\x1b[{dice.choice(('', '?'))}{';'.join(map(str, numbers))}"
            piece += dice.choice(FINALS)
        else:
            piece = "\x1b" + dice.choice(ESCAPES if kind < 0.96 else STRINGS)
        drawn += piece.encode()
    return bytes(drawn)


@pytest.mark.parametrize("seed", range(4))
def test_a_jump_from_a_kept_screen_ends_where_playing_ends(seed: int, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "quickstart.browser_files"], cwd=PROJECT_ROOT, check=True)
    emulator_command.cache_clear()
    command = emulator_command()
    assert command is not None
    node = command[-3]
    script = tmp_path / "jumps.mjs"
    script.write_text(SCRIPT)
    dice = random.Random(seed)
    drawn = _drawn(dice)
    # A jump begins behind its screen, which may move on out of a long sequence.
    places = [dice.randrange(len(drawn) - 200) for _ in range(JUMPS)]
    jumps = [(place, dice.randrange(place + 100, len(drawn))) for place in places]
    asked = json.dumps({"data": base64.b64encode(drawn).decode(), "jumps": jumps})
    answer = subprocess.run(
        [node, str(script), str(STATIC)], input=asked, capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(found) == JUMPS
    assert [jump for jump in found if jump[2]] == []
