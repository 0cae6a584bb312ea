"""A program that writes down what it prints and reads, so that the truth lies beside each claim.

``python3 program.py talk DIRECTORY NAME`` reads lines and does what each asks for.
``python3 program.py print DIRECTORY NAME LINES SECONDS CODE`` prints lines, then exits with CODE.

In DIRECTORY it writes NAME.log, one event a line with the time of the monotonic clock: ``start``,
``wait`` before it reads, ``read`` with what it read, ``end``. NAME.out and NAME.err get every byte
before the terminal or the pipe does. Only the standard library is used: it runs anywhere.
"""

import os
import select
import sys
import termios
import time
import zlib
from pathlib import Path

_CLOSED = 3
_BLOCK_BYTES = 4096
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def line_of(name: str, number: int) -> str:
    """A numbered line with its checksum."""
    text = f"{name}:{number}:{'abcdefghij' * (number % 5)}"
    return f"{text}:{zlib.crc32(text.encode()):08x}"


class Notes:
    """The notes that the program takes beside what it prints."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._log = os.open(directory / f"{name}.log", _APPEND, 0o600)
        self._copies = {
            stream: os.open(directory / f"{name}.{suffix}", _APPEND, 0o600)
            for stream, suffix in ((1, "out"), (2, "err"))
        }
        self._is_terminal = os.isatty(1)
        self._printed = 0

    def event(self, kind: str, text: str = "") -> None:
        """Write down that something happens now."""
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        os.write(self._log, f"{kind} {now:.6f} {text}\n".encode())

    def put(self, text: str, stream: int = 1) -> None:
        """Write the text down, then print it."""
        data = text.encode()
        self.noted(text, stream)
        while data:
            data = data[os.write(stream, data) :]

    def noted(self, text: str, stream: int = 1) -> None:
        """Write down text that appears in the output, as the terminal shows it."""
        shown = text.replace("\n", "\r\n") if self._is_terminal else text
        os.write(self._copies[1 if self._is_terminal else stream], shown.encode())

    def lines(self, count: int, stream: int = 1) -> None:
        """Print numbered lines, in one piece."""
        numbers = range(self._printed, self._printed + count)
        self._printed += count
        self.put("".join(f"{line_of(self.name, number)}\n" for number in numbers), stream)


def _echoes() -> bool:
    return os.isatty(0) and bool(termios.tcgetattr(0)[3] & termios.ECHO)


def _set_echo(*, is_on: bool) -> None:
    if os.isatty(0):
        modes = termios.tcgetattr(0)
        modes[3] = modes[3] | termios.ECHO if is_on else modes[3] & ~termios.ECHO
        termios.tcsetattr(0, termios.TCSADRAIN, modes)


def _pause(seconds: float) -> None:
    select.select([], [], [], seconds)


class Talk:
    """Reads lines such as ``7 say 3``: a number of the caller's, a verb and its argument."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._kept = b""
        self._turn = 0

    def run(self) -> int:
        """Take lines until one asks for the end; return the exit code."""
        while True:
            self._notes.put(f"{self._notes.name} {self._turn}> ")
            line = self._next_line()
            if line is None:
                return _CLOSED
            self._notes.event("read", line)
            number, verb, argument = [*line.split(), "", "", ""][:3]
            self._notes.put(f"ack {self._turn} {number}\n")
            self._turn += 1
            code = self._do(verb, argument)
            if code is not None:
                return code

    def _next_line(self) -> str | None:
        is_echoed = _echoes()
        while b"\n" not in self._kept:
            self._notes.event("wait", str(self._turn))
            block = os.read(0, _BLOCK_BYTES)
            if not block:
                return None
            self._kept += block
        line, _, self._kept = self._kept.partition(b"\n")
        text = line.decode(errors="replace")
        if is_echoed:
            self._notes.noted(f"{text}\n")
        elif os.isatty(0):
            _set_echo(is_on=True)
        return text

    def _do(self, verb: str, argument: str) -> int | None:
        if verb == "exit":
            return int(argument)
        if verb == "kill":
            self._notes.event("end", f"signal {argument}")
            os.kill(os.getpid(), int(argument))
        if verb == "say":
            self._notes.lines(int(argument))
        if verb == "complain":
            self._notes.lines(int(argument), 2)
        if verb == "work":
            _pause(int(argument) / 1000)
        if verb == "hide":
            _set_echo(is_on=False)
        return None


def _print(notes: Notes, lines: int, seconds: float, code: int) -> int:
    for number in range(lines):
        notes.lines(1, 2 if number % 7 == 6 else 1)
        _pause(seconds)
    return code


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for; return the exit code."""
    mode, directory, name, *rest = arguments
    notes = Notes(Path(directory), name)
    notes.event("start", f"{os.getpid()} {os.getppid()}")
    if mode == "talk":
        code = Talk(notes).run()
    else:
        code = _print(notes, int(rest[0]), float(rest[1]), int(rest[2]))
    notes.event("end", f"code {code}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
