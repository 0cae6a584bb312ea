"""Floods of output: every byte is delivered or lies in an exact gap, and memory stays bounded."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from controller_client.protocol.limits import RING_BYTES
from tests.support.processes import resident_bytes, status_field
from tests.support.stack import Stack, deployed
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

_MIB = 1024 * 1024
_HUNDRED_MB_LINES = 11_250_000
_TWENTY_MB_LINES = 2_350_000


def _peak_bytes(pid: int) -> int:
    return int((status_field(pid, "VmHWM") or "0 kB").split()[0]) * 1024


def _numbers(last: int) -> Iterator[bytes]:
    step = 50_000
    for start in range(1, last + 1, step):
        yield "".join(
            f"{number}\r\n" for number in range(start, min(start + step, last + 1))
        ).encode()


def _digest(blocks: Iterable[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for block in blocks:
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


@pytest.mark.requirement("S4.R1.3")
async def test_a_hundred_megabytes_arrive_whole_with_flat_memory(own_stack: Stack) -> None:
    assert own_stack.server is not None
    # On a cluster the run is a repetition.
    lines = _HUNDRED_MB_LINES if deployed() is Stack else _TWENTY_MB_LINES
    async with own_stack.caller() as caller:
        async with caller.terminal("cat") as warm:
            await warm.send("warm\n")
        base = resident_bytes(own_stack.server.pid)
        session = await caller.start(
            f"bash -c 'read x; seq 1 {lines}; read x'", lifetime_seconds=280
        )
        holder = own_stack.holder_pid(session.session_id)
        assert holder is not None
        holder_base = _peak_bytes(holder)
        await session.send("\n", wait_seconds=0, max_output_bytes=4096)
        await await_until(
            lambda: own_stack.database.session(session.session_id, "terminal_input_seq") == (1,),
            90,
            "the flood",
        )
        # Each answered question echoes its line end.
        expected_digest, expected_size = _digest(chain([b"\r\n"], _numbers(lines), [b"\r\n"]))

        def is_through() -> bool:
            offset, state = own_stack.database.session(
                session.session_id, "stdout_next_offset", "terminal_state"
            )
            return bool(offset == expected_size - 2 and state == "awaiting_input")

        await await_until(is_through, 120, "all output to be committed")
        assert _peak_bytes(own_stack.server.pid) - base < 48 * _MIB
        assert _peak_bytes(holder) - holder_base < RING_BYTES + 8 * _MIB
        await session.send("\n", max_output_bytes=4096)
        await session.until("exited")
    assert own_stack.database.accounted_bytes(session.session_id) == (expected_size, 0)
    await own_stack.database.await_verified(session.session_id)
    assert (
        _digest(
            data
            for _, _, data in own_stack.database.extents(session.session_id)
            if data is not None
        )[0]
        == expected_digest
    )


@pytest.mark.requirement("S4.R4.2", "S4.R4.3")
async def test_an_outage_that_overflows_the_ring_keeps_the_newest_after_a_gap(
    own_stack: Stack, tmp_path: Path
) -> None:
    last, gate, printed = 2_500_000, tmp_path / "gate", tmp_path / "printed"
    # The program prints nothing before the server is dead.
    waits = f"until [ -e {gate} ]; do sleep 0.05; done"
    prints = f"read -p go x; {waits}; seq 1 {last}; touch {printed}; read -p over x"
    total = _digest(_numbers(last))[1]
    async with own_stack.caller() as caller:
        session = await caller.start(f"bash -c '{prints}'")
        session_id, holder = session.session_id, own_stack.holder_pid(session.session_id)
        assert holder is not None
        await session.send("\n", wait_seconds=0)
        await await_until(
            lambda: own_stack.database.transcript(session_id) == b"go\r\n", 60, "the input"
        )
    own_stack.kill_server()
    gate.touch()
    await await_until(
        lambda: printed.exists() and _is_quiet(own_stack, session_id),
        60,
        "the program to print everything",
    )
    own_stack.start_server()
    async with own_stack.caller() as caller:
        whole = len("go\r\n") + total + len("over")
        committed = "everything the host still has to be committed"
        await await_until(
            lambda: own_stack.database.session(session_id, "stdout_next_offset") == (whole,),
            60,
            committed,
        )
        delivered, missing = own_stack.database.accounted_bytes(session_id)
        assert missing > 0
        assert delivered + missing == whole
        assert delivered >= RING_BYTES - 64 * 1024
        extents = own_stack.database.extents(session_id)
        # How the last bytes are divided into rows is left to the timing of their frames.
        newest = b"".join(data or b"" for _, _, data in extents[-3:])
        assert newest.endswith(f"{last}\r\nover".encode())
        lost_from, lost_to = next((start, to) for start, to, data in extents if data is None)
        answer = await caller.call(
            "read_session_output", session_id=session_id, offset=lost_from, max_bytes=4096
        )
        assert answer["gaps"] == [
            {"from_offset": lost_from, "to_offset": lost_to, "reason": "ring_overflow"}
        ]
        await caller.call("send_command_input", session_id=session_id, input_text="\n")


def _is_quiet(stack: Stack, session_id: str) -> bool:
    """Only the shell is left, asleep in its second question."""
    pids = stack.program_pids(session_id)
    return len(pids) == 1 and (status_field(pids[0], "State") or "").startswith("S")


async def test_a_flood_delays_neither_other_sessions_nor_its_own_end(own_stack: Stack) -> None:
    async with own_stack.caller() as caller:
        flood = await caller.start("yes", wait_seconds=0.5, max_output_bytes=4096)
        async with caller.terminal("python3 -q") as calm:
            for number in range(5):
                await calm.send(f"print({number} + 1000)\n")
                assert str(number + 1000) in calm.result["output"]
                assert calm.result["state"] == "awaiting_input"
        await flood.send("", terminate=True, max_output_bytes=4096)
        await flood.until("exited", 30)
        assert flood.result["end_reason"] == "terminated"
        delivered, missing = own_stack.database.accounted_bytes(flood.session_id)
        assert (
            delivered + missing
            == own_stack.database.session(flood.session_id, "stdout_next_offset")[0]
        )
