"""The only process that could take input, with real programs that try to be a second one."""

import platform
from pathlib import Path

import pytest

from tests.programs.truth.writing import python
from tests.support.hosts.bare_terminal import BareTerminal

_ASKS = """
import ctypes, getpass, mmap, os, select
ready, tell = os.pipe()
if os.fork() == 0:
    terminal = os.open("/dev/tty", os.O_RDWR)
    os.write(tell, b"x")
    {takes}
    os._exit(0)
os.read(ready, 1)
select.select([], [], [], 0.2)
getpass.getpass("Password: ")
"""
_SPLICE = "r, w = os.pipe(); os.splice(terminal, w, 100)"
# mov eax, 3; mov ebx, terminal; mov ecx, place; mov edx, 100; int 0x80: read, as in 32 bits.
_OLD_READ = """
    code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    word = lambda number: number.to_bytes(4, "little")
    code[:] = (b"\\x53\\xb8\\x03\\0\\0\\0\\xbb" + word(terminal) + b"\\xb9" + word(at + 2048)
        + b"\\xba\\x64\\0\\0\\0\\xcd\\x80\\x5b\\xc3").ljust(4096, b"\\0")
    ctypes.CFUNCTYPE(ctypes.c_int)(at)()
"""
# Other machines than these have no older calls.
_RARE = [_SPLICE, _OLD_READ.strip()] if platform.machine() == "x86_64" else [_SPLICE]
_RESTS = "select.select([ready], [], [])"


def _asks(takes: str) -> tuple[str, ...]:
    return python(_ASKS.format(takes=takes))


@pytest.mark.parametrize("takes", _RARE)
@pytest.mark.parametrize("apart", ["", "os.setsid(); "])
def test_a_child_that_takes_input_in_a_rare_way_may_read(
    takes: str, apart: str, tmp_path: Path
) -> None:
    # A session of its own keeps no process from reading a terminal that it has open.
    with BareTerminal(_asks(apart + takes), cwd=str(tmp_path)) as terminal:
        assert terminal.wait(20).is_waiting
        reader = terminal.watcher.reader()
        assert reader is not None
        assert not reader.is_only(terminal.process.pid) or terminal.watcher.is_read_by_others(
            terminal.process.pid
        )


def test_a_child_that_rests_takes_nothing_from_the_reader() -> None:
    with BareTerminal(_asks(_RESTS)) as terminal:
        assert terminal.wait(20).is_waiting
        reader = terminal.watcher.reader()
        assert reader is not None
        assert reader.is_only(terminal.process.pid)
        assert not terminal.watcher.is_read_by_others(terminal.process.pid)
