"""One record, one line, whatever is in it."""

import json
import logging
import sys

from config.log_format import JsonFormatter


def _line(message: str, *args: object, with_error: bool = False) -> str:
    try:
        raise ValueError("inner\nline") if with_error else KeyError
    except (ValueError, KeyError):
        error = sys.exc_info() if with_error else None
    return JsonFormatter().format(logging.LogRecord("a.logger", logging.WARNING, "file", 1, message, args, error))


def test_a_record_cannot_forge_a_second_line_or_reach_a_terminal() -> None:
    line = _line("%s", 'x\n{"level": "CRITICAL"}\x1b]52;c;aGk=\x07\u202e\x9b')
    assert "\n" not in line
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"].startswith("x\n")


def test_an_exception_stays_in_its_line() -> None:
    line = _line("failed", with_error=True)
    assert "\n" not in line
    assert "ValueError" in json.loads(line)["traceback"]


def test_a_long_message_is_cut() -> None:
    assert len(_line("x" * 100_000)) < 10_000
