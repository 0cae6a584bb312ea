"""The daemon's log is one safe line for each record."""

import json
import logging
import sys
from typing import Any

import pytest

from controller_client.config.log import LineFormatter, configure, redact


def _line(message: str, *arguments: object, exc_info: Any = None) -> str:
    record = logging.LogRecord("name", logging.INFO, "path", 1, message, arguments, exc_info)
    return LineFormatter().format(record)


def test_a_record_is_one_line_of_ascii_whatever_is_in_it() -> None:
    line = _line("a\nb\r%s", "\x1b[31m\u202e\ud800é")
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"].startswith("a\nb\r")


def test_a_traceback_stays_inside_its_line() -> None:
    try:
        int("first\nsecond")
    except ValueError:
        line = _line("failed", exc_info=sys.exc_info())
    assert "\n" not in line
    assert "ValueError" in json.loads(line)["exception"]


def test_credentials_are_blanked_and_their_key_ids_kept() -> None:
    assert redact("Bearer ctl_k1_se-cr_et and hl_k2_other.") == "Bearer ctl_k1_*** and hl_k2_***."
    assert redact("used enr_k3_se-cr_et") == "used enr_k3_***"
    assert "se-cr" not in _line("%s", "ctl_k1_se-cr_et")


def test_a_very_long_text_is_cut() -> None:
    assert len(_line("x" * 100_000)) < 3_000


def test_frames_and_headers_of_the_websocket_library_are_never_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root, websockets = logging.getLogger(), logging.getLogger("websockets")
    handlers, level, library_level = root.handlers[:], root.level, websockets.level
    try:
        configure("debug")
        logging.getLogger("websockets.client").debug("> Authorization: Bearer secret")
        logging.getLogger("controller_client").debug("ours")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        websockets.setLevel(library_level)
    written = capsys.readouterr().err
    assert "secret" not in written
    assert '"message": "ours"' in written
