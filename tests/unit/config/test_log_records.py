"""Each log record is one line, whatever it holds, with ids and without contents."""

import json
import logging
import sys
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError
from structlog.contextvars import bound_contextvars

from config.log_records import MAX_CHARS, json_formatter
from projects.errors.sessions import SessionNotFound


def _line(message: str, *args: object, error: BaseException | None = None) -> str:
    exc_info: Any = None
    if error is not None:
        try:
            raise error
        except type(error):
            exc_info = sys.exc_info()
    return json_formatter().format(
        logging.LogRecord("a.logger", logging.WARNING, "file", 1, message, args, exc_info)
    )


def _record(message: str, *args: object, error: BaseException | None = None) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(_line(message, *args, error=error))
    return record


def test_a_record_cannot_forge_a_second_line_or_reach_a_terminal() -> None:
    line = _line("%s", 'x\n{"level": "CRITICAL"}\x1b]52;c;aGk=\x07\u202e\x9b')
    assert "\n" not in line
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"].startswith("x\n")


def test_a_record_has_time_logger_and_level() -> None:
    record = _record("told %s", "so")
    assert record.pop("time").endswith("Z")
    assert record == {"level": "warning", "logger": "a.logger", "message": "told so"}


def test_ids_that_are_bound_are_in_every_record() -> None:
    with bound_contextvars(request_id="r1", controller_id="c1"):
        record = _record("x")
    assert (record["request_id"], record["controller_id"]) == ("r1", "c1")
    assert "request_id" not in _record("x")


def test_an_error_shows_its_kind_and_place_but_not_its_text() -> None:
    line = _line("failed", error=ValueError("typed: hunter2\nline"))
    record = json.loads(line)
    assert "\n" not in line
    assert record["error"] == "ValueError"
    assert record["frames"][-1].endswith(" _line")
    assert "hunter2" not in line


def test_errors_whose_text_holds_no_values_show_it() -> None:
    shown = _record(
        "failed",
        error=IntegrityError(
            'violates "one_chunk_per_offset"\nDETAIL: Failing row contains (hunter2)'
        ),
    )["error"]
    assert shown == 'django.db.utils.IntegrityError: violates "one_chunk_per_offset"'
    assert _record("failed", error=ConnectionRefusedError(111, "Connection refused"))[
        "error"
    ].endswith("Connection refused")
    assert _record("failed", error=SessionNotFound(uuid4()))["error"].startswith(
        "projects.errors.sessions.SessionNotFound"
    )


def test_the_cause_of_an_error_is_named_too() -> None:
    error = RuntimeError("hunter2")
    error.__cause__ = KeyError("hunter2")
    assert _record("failed", error=error)["error"] == "RuntimeError <- KeyError"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hl_0123456789abcdef_secretsecretsecret",
        "{'authorization': 'Bearer secretsecretsecret'}",
        "(b'authorization', b'Basic secretsecretsecret')",
        "tried ctl_0123456789abcdef_secretsecretsecret twice",
        "GET /controllers/enrol?code=enr_0123456789abcdef_secretsecretsecret",
    ],
)
def test_credentials_are_taken_out(text: str) -> None:
    assert "secret" not in _line("%s", text)
    assert "[redacted]" in _record(text)["message"]


def test_a_long_text_is_cut() -> None:
    with bound_contextvars(tool="y" * 100_000):
        record = _record("x" * 100_000)
    assert (len(record["message"]), len(record["tool"])) == (MAX_CHARS, MAX_CHARS)
