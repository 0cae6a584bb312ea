"""Progress on a terminal and in a log."""

import io

from quickstart.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_rewrites_one_line_until_the_next_line() -> None:
    stream = Terminal()
    console = Console(stream)
    console.progress("[1/3] django")
    console.progress("[2/3] mcp")
    console.line("done")
    assert stream.getvalue() == "\r\x1b[K    [1/3] django\r\x1b[K    [2/3] mcp\r\x1b[Kdone\n"


def test_in_a_log_progress_is_not_repeated_for_every_package() -> None:
    stream = io.StringIO()
    console = Console(stream)
    console.step("Installing")
    for number in range(100):
        console.progress(f"[{number}/100]")
    assert stream.getvalue() == "==> Installing\n"
