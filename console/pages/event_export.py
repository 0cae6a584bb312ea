"""The export of the time line as JSON lines or CSV, with the filters of the page."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from console.parts.access import EXPORT_EVENTS, SEE_EVENTS, page
from console.parts.events import WrongFilter, events_of, names_of, wanted_by
from projects.admin.parts.access import actor_of, require_still
from projects.audit.log import audit
from projects.models import AuditEvent
from projects.reads.streamed import streamed

_ROWS_AT_ONCE: Final = 500
_COLUMNS: Final = (
    *("at", "project", "host", "session", "command", "actor", "action", "detail"),
    *("project_id", "host_id", "seq", "hash"),
)
# A spreadsheet takes a cell that begins with one of these for a formula. It may part cells at
# another separator than ours, and inside quotes that it reads as text.
# The second form of the four signs is as wide as an ideograph; some spreadsheets take it as well.
_FORMULA: Final = re.compile(r"^(?=[\t\r])|(^|[;,|\t\r\n\"'])(?=[=+@\-\uff1d\uff0b\uff20\uff0d])")


@page(SEE_EVENTS, EXPORT_EVENTS)
@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """Streams the events that the filters leave, and audits that for each project."""
    try:
        wanted = wanted_by(request.POST)
    except WrongFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain")
    rows = events_of(request, wanted)
    newest = rows.values_list("pk", flat=True).first() or 0
    rows = rows.filter(pk__lte=newest)
    is_csv = request.POST.get("format") == "csv"
    projects = set(rows.order_by().values_list("project_id", flat=True).distinct())
    for project_id in projects:
        audit(
            actor_of(request), "audit.export", (project_id, None, None), {"filters": wanted.values}
        )
    write = _csv_line if is_csv else _json_line
    kind, name = ("text/csv", "csv") if is_csv else ("application/jsonl", "jsonl")
    lines = _lines(
        rows.order_by("id"),
        write,
        partial(require_still, request, projects, SEE_EVENTS, EXPORT_EVENTS),
        has_head=is_csv,
    )
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="timeline.{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _lines(
    rows: Any,
    write: Callable[[Mapping[str, Any]], str],
    require: Callable[[], None],
    *,
    has_head: bool,
) -> AsyncIterator[bytes]:
    if has_head:
        yield _csv_line({name: name for name in _COLUMNS}).encode()
    async for page_of_rows in streamed(_pages(rows), require):
        yield "".join(map(write, page_of_rows)).encode()


def _pages(rows: Any) -> Iterator[list[dict[str, Any]]]:
    """Reads the events in pages: an open cursor would hold a snapshot all the time."""
    last = 0
    while events := list(rows.filter(pk__gt=last)[:_ROWS_AT_ONCE]):
        names = names_of(events)
        yield [_row(event, names) for event in events]
        last = events[-1].pk


def _row(event: AuditEvent, names: Any) -> dict[str, Any]:
    return {
        "at": event.created_at.astimezone(UTC).isoformat(timespec="microseconds"),
        "project": names.projects.get(event.project_id, ""),
        "host": names.hosts.get(event.controller_id, ""),
        "session": str(event.session_id or ""),
        "command": names.command_of(event) or "",
        "actor": event.actor,
        "action": event.action,
        "detail": event.detail,
        "project_id": str(event.project_id),
        "host_id": str(event.controller_id or ""),
        "seq": event.seq,
        "hash": event.hash,
    }


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


def _csv_line(row: Mapping[str, Any]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerow(_cell(row[name]) for name in _COLUMNS)
    return text.getvalue()


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return _FORMULA.sub(lambda before: f"{before[0]}'", text)
