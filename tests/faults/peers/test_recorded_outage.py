"""What a program printed while the network was away is replayed with the host's own times."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.proxies.chaos import ChaosProxy
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

# Each line says when the program printed it. The file tells the test how far the program is.
CLOCK = """
for tick in $(seq {ticks}); do
  line="at $EPOCHREALTIME."
  echo "$line" >> {ticks_file}
  echo "$line"
  sleep 0.25
done
"""
TICKS_A_SECOND = 4
SLACK_SECONDS = 2.0


def _cast(stack: Stack, session_id: str) -> list[tuple[float, str]]:
    """The output of the recording, with the seconds at which a player shows it."""
    address = f"http://127.0.0.1:{stack.port}/recordings/{session_id}?format=cast"
    key = {"Authorization": f"Bearer {stack.provisioned.token}"}
    with urlopen(Request(address, headers=key), timeout=60) as answer:
        header, *lines = map(json.loads, answer.read().splitlines())
    assert "host times" in header["tags"]
    now, shown = 0.0, []
    for seconds, code, text in lines:
        now += seconds
        if code == "o":
            shown.append((now, text))
    return shown


def _times(shown: list[tuple[float, str]]) -> list[tuple[float, float]]:
    """When each line is shown, and when the program says that it printed the line."""
    return [
        (at, float(line.split()[1].rstrip(".")))
        for at, text in shown
        for line in text.splitlines()
        if line.startswith("at ") and line.endswith(".")
    ]


async def test_an_outage_is_replayed_with_the_times_of_the_host(
    proxied: tuple[Stack, ChaosProxy], tmp_path: Path, is_long: bool
) -> None:
    stack, proxy = proxied
    seconds = 30 if is_long else 6
    ticks_file, script = tmp_path / "ticks", tmp_path / "clock.sh"
    ticks_file.touch()
    ticks = TICKS_A_SECOND * (seconds + 6)
    script.write_text(CLOCK.format(ticks=ticks, ticks_file=ticks_file))

    def printed() -> int:
        return len(ticks_file.read_text().splitlines())

    async with stack.caller() as caller:
        session_id = (await caller.start(f"bash {script}", wait_seconds=0.2)).session_id
    await await_until(lambda: printed() >= TICKS_A_SECOND, 60, "the first lines")
    proxy.hold()
    proxy.cut()
    before, stored = printed(), len(stack.database.transcript(session_id))
    away = before + TICKS_A_SECOND * seconds
    await await_until(lambda: printed() >= min(away, ticks), 120, "the outage to last")
    assert len(stack.database.transcript(session_id)) <= stored + 100
    proxy.resume()
    ended = "the program's end to be committed"
    await await_until(lambda: stack.database.state(session_id) == "EXITED", 90, ended)
    times = _times(_cast(stack, session_id))
    assert len(times) >= ticks - 2
    (first_shown, first_said), *later = times
    for shown, said in later:
        assert abs((shown - first_shown) - (said - first_said)) < SLACK_SECONDS
