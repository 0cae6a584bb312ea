"""Log records: one JSON object per line, whatever a message contains.

Structlog formats the records of the standard library's loggers: the product's, Django's, Daphne's
and uvicorn's. Each record carries the ids that are bound in its context (``request_id``,
``controller_id``, ``session_id``, ``tool``). No record holds typed input or program output: our
code logs ids, codes and counts, and of an exception only a text that is made without values is
kept.
"""

import re
import traceback
from types import TracebackType
from typing import Any, Final

from django.db import Error as DatabaseError
from structlog.contextvars import merge_contextvars
from structlog.processors import EventRenamer, JSONRenderer, TimeStamper
from structlog.stdlib import ProcessorFormatter, add_log_level, add_logger_name
from structlog.typing import EventDict

MAX_CHARS: Final = 2048
"""The longest text in a record; longer texts are cut."""
MAX_FRAMES: Final = 30
_OWN_PACKAGES: Final = ("config.", "projects.", "mcp_adapter.", "controller_client.")
# The id of a token may be logged, its secret must not.
_TOKEN: Final = re.compile(r"\b(hl|ctl|enr)_([0-9a-f]{16})_[A-Za-z0-9_-]+")
_AUTHORIZATION: Final = re.compile(
    r"(?i)\b(authorization\W{1,8}(?:b['\"])?(?:(?:bearer|basic)\s+)?|bearer\s+)[^\s\"',}\]]+"
)
_REDACTED: Final = "[redacted]"


def json_formatter() -> ProcessorFormatter:
    """The formatter that the LOGGING setting names."""
    return ProcessorFormatter(
        foreign_pre_chain=[
            merge_contextvars,
            add_logger_name,
            add_log_level,
            TimeStamper(fmt="iso", key="time"),
        ],
        processors=[
            _describe_error,
            ProcessorFormatter.remove_processors_meta,
            EventRenamer("message"),
            _clean,
            JSONRenderer(),
        ],
    )


def _clean(_logger: Any, _name: str, record: EventDict) -> EventDict:
    # JSON's own escaping keeps each record on one line.
    return {name: _cleaned(value) for name, value in record.items()}


def _cleaned(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    # Cut first, as matching takes time by length. A credential that is cut keeps its beginning:
    # either a pattern still matches, or the secret part is gone.
    text = str(value)[:MAX_CHARS]
    return _TOKEN.sub(rf"\1_\2_{_REDACTED}", _AUTHORIZATION.sub(rf"\1{_REDACTED}", text))


def _describe_error(_logger: Any, _name: str, record: EventDict) -> EventDict:
    # Fields ``error`` and ``frames`` replace a traceback, because source lines and most texts of
    # exceptions quote data.
    error = _error_of(record.pop("exc_info", None))
    record.pop("stack_info", None)
    if error is not None:
        record["error"] = _chain(error)
        record["frames"] = _frames(error.__traceback__)
    return record


def _error_of(exc_info: Any) -> BaseException | None:
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    return error if isinstance(error, BaseException) else None


def _chain(error: BaseException | None) -> str:
    texts: list[str] = []
    while error is not None and len(texts) < MAX_FRAMES:
        texts.append(_described(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " <- ".join(texts)


def _described(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    if not isinstance(error, OSError | DatabaseError) and not kind.__module__.startswith(
        _OWN_PACKAGES
    ):
        return name
    # From its second line on, a database's error quotes the row.
    text = next(iter(str(error).splitlines()), "")
    return f"{name}: {text[:256]}" if text else name


def _frames(trace: TracebackType | None) -> list[str]:
    found = traceback.extract_tb(trace)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in found]
