"""Records what the database does for each statement: its plan, and the work that it was.

The work is counted by the database itself, so it does not depend on the machine: rows that were
looked at on PostgreSQL, instructions of its machine on SQLite.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from django.db import connection
from django.db.backends.signals import connection_created

from projects.storage.access import close_threads

_LITERAL = re.compile(r"x?'(?:[^']|'')*'|\$\d+|\b\d+(?:\.\d+)?\b|NULL")
_LIST = re.compile(r"(?:\?, ?)+\?")
_AUTO_EXPLAIN = (
    # Threads for long reads leave the choice to the planner, which reads small tables whole. Among
    # many rows it takes the index by itself.
    "SET enable_seqscan = off",
    "LOAD 'auto_explain'",
    "SET auto_explain.log_min_duration = 0",
    "SET auto_explain.log_analyze = on",
    "SET auto_explain.log_timing = off",
    "SET auto_explain.log_format = json",
    "SET auto_explain.log_level = notice",
)


class StatementRecorder:
    """Records the statements of all connections that are opened inside its ``with`` block.

    ``work`` has the most work of any execution, by statement without its values.
    """

    def __init__(self) -> None:
        self.work: dict[str, int] = {}
        self._plans: dict[str, str] = {}
        self._open: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        _reconnect()
        connection_created.connect(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        for count_the_last in self._open:
            count_the_last()
        connection_created.disconnect(self._watch)
        _reconnect()
        self.work.pop("", None)

    def plan_of(self, statement: str) -> str:
        """The plan of the execution that was the most work, one step a line."""
        plan = self._plans[statement]
        if connection.vendor == "postgresql":
            return plan
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {plan.replace('%', '%%')}")
            return "\n".join(row[3] for row in cursor.fetchall())

    def _watch(self, *, connection: Any, **_: object) -> None:
        if connection.vendor == "sqlite":
            self._open.append(_watch_sqlite(connection.connection, self._add))
        else:
            _watch_postgresql(connection.connection, self._add)

    def _add(self, statement: str, plan: str, work: int) -> None:
        name = _LIST.sub("?", _LITERAL.sub("?", statement))
        if work >= self.work.get(name, -1):
            self.work[name], self._plans[name] = work, plan


Add = Callable[[str, str, int], None]


def _reconnect() -> None:
    """End the connections of this process, so that the next ones are new."""
    close_threads()
    connection.close()


def _watch_sqlite(raw: Any, add: Add) -> Callable[[], None]:
    """Return what counts the last statement: each is counted when the next one begins."""
    running, steps = "", 0

    def on_statement(statement: str) -> None:
        nonlocal running, steps
        if not statement.startswith("--"):  # one of a trigger belongs to what set it off
            add(running, running, steps)
            running, steps = statement, 0

    def on_step() -> None:
        nonlocal steps
        steps += 1

    raw.set_trace_callback(on_statement)
    raw.set_progress_handler(on_step, 1)
    return lambda: add(running, running, steps)


def _watch_postgresql(raw: Any, add: Add) -> None:
    def on_notice(notice: Any) -> None:
        text = notice.message_primary
        if "plan:" in text:
            found = json.loads(text.partition("plan:")[2])
            nodes = list(_nodes(found["Plan"]))
            add(found["Query Text"], "\n".join(map(_step, nodes)), sum(map(_rows, nodes)))

    for statement in _AUTO_EXPLAIN:
        raw.execute(statement)
    raw.add_notice_handler(on_notice)


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _step(node: Mapping[str, Any]) -> str:
    return " ".join(
        str(node[name])
        for name in ("Node Type", "Relation Name", "Index Name", "Index Cond", "Filter", "Sort Key")
        if name in node
    )


def _rows(node: Mapping[str, Any]) -> int:
    if "Relation Name" not in node and "Index Name" not in node:
        return 0
    removed = sum(rows for name, rows in node.items() if name.startswith("Rows Removed"))
    return int((node["Actual Rows"] + removed) * node["Actual Loops"])
