"""A session's state is written by one module: the one that asks the table of transitions.

The test reads the syntax tree of every module for writes through the ORM, and every string for SQL.
If it cannot follow a write it reports it: a dictionary with the key ``state`` beside
``update(**...)``, or a column list that ``format`` completes.

The message that starts a session has one writer, too: one function builds it, once for each type.
"""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.architecture.test_layout import ROOT, modules

WRITER = Path("projects/sessions/state.py")
START_WRITER = Path("projects/sessions/transactions/start.py")
STARTS = ("StartInteractiveCmd", "RunCommand")
MODEL, TABLE = "CommandSession", "projects_commandsession"
# In ``projects`` only a session has a ``state``. Elsewhere other things have one, such as the
# agent's runs: there a write is a session's if it names the model or the table.
HAS_SESSIONS = "projects"
CREATES = {"create", "get_or_create", "update_or_create", "bulk_create"}
SAVES = {"save", "bulk_update"}
# Calls that write the columns that their keywords name.
SETS_COLUMNS = {"update", "row_update", MODEL} | CREATES
# An assigned column follows SET or a comma. A compared column follows WHERE or AND.
ASSIGNS_STATE = re.compile(r"(?:^|,|\bSET\b)\s*\"?state\"?\s*=", re.IGNORECASE)
WRITES_TABLE = re.compile(
    rf"\b(UPDATE|UPDATE ONLY|INTO)\s+\"?{TABLE}\b\"?(?P<assigned>.*?)(\bWHERE\b|$)",
    re.IGNORECASE | re.DOTALL,
)


def _called(call: ast.Call) -> str:
    """The last part of the called name, without the ``a`` of an asynchronous method."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name[1:] if name[1:] in CREATES | SAVES | {"update"} else name


def _names_model(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == MODEL for part in ast.walk(node))


def _is_state(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "state"


def _has_state_key(scope: ast.AST) -> bool:
    """True if a dictionary with the key ``state`` is made in this scope."""
    for node in ast.walk(scope):
        keys: list[ast.AST | None] = []
        if isinstance(node, ast.Dict):
            keys += node.keys
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            keys.append(node.slice)
        elif isinstance(node, ast.Call) and _called(node) == "dict":
            keys += [ast.Constant(keyword.arg) for keyword in node.keywords]
        if any(map(_is_state, keys)):
            return True
    return False


def _is_write(call: ast.Call, scope: ast.AST, *, builds_rows: bool) -> bool:
    name, keywords = _called(call), {keyword.arg for keyword in call.keywords}
    if name in SETS_COLUMNS and "state" in keywords:
        return True
    if name in SETS_COLUMNS and None in keywords and _has_state_key(scope):
        return True
    if name in SAVES | {"setattr"} and any(map(_is_state, ast.walk(call))):
        return True
    if name in CREATES | SAVES | {"row_insert", "row_swap"} and _names_model(call):
        return True
    return builds_rows and name in SAVES | {"row_insert", "bulk_create"}


def _scopes(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Map each node inside a function to the outermost function around the node."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    scopes: dict[ast.AST, ast.AST] = {}
    for function in (each for each in ast.walk(tree) if isinstance(each, kinds)):
        if function not in scopes:
            scopes |= dict.fromkeys(ast.walk(function), function)
    return scopes


def _orm_writes(tree: ast.AST, *, has_sessions: bool) -> Iterator[int]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    builds_rows = any(_called(call) == MODEL for call in calls)
    scopes = _scopes(tree)
    for call in calls:
        is_about = has_sessions or _names_model(call)
        if is_about and _is_write(call, scopes.get(call, tree), builds_rows=builds_rows):
            yield call.lineno
    for node in ast.walk(tree):
        is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_set and has_sessions and re.fullmatch(r"(?!self\.).*\.state", ast.unparse(node)):
            yield node.lineno


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string with its line. Each value of an f-string is ``{}``."""
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in formatted for part in node.values}
    for node in formatted:
        texts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        yield node.lineno, "".join(map(str, texts))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in parts:
            yield node.lineno, node.value


def _sql_writes(tree: ast.AST) -> Iterator[int]:
    for line, text in _strings(tree):
        written = WRITES_TABLE.search(text)
        if written is None:
            # This string is a part of a statement that is put together elsewhere.
            if "%s" in text and ASSIGNS_STATE.search(text):
                yield line
            continue
        assigned = written["assigned"]
        is_update = re.search(r"\bSET\b", assigned, re.IGNORECASE)
        # A write: an INSERT, an assigned ``state``, or columns that this test cannot see.
        if not is_update or ASSIGNS_STATE.search(assigned) or "{" in assigned:
            yield line


def _writes(path: Path, text: str) -> list[str]:
    """Return the lines of a module that write a session's state, or that may."""
    tree = ast.parse(text)
    has_sessions = path.parts[0] == HAS_SESSIONS
    lines = set(_orm_writes(tree, has_sessions=has_sessions))
    if has_sessions or TABLE in text:
        lines |= set(_sql_writes(tree))
    return [f"{path}:{line}" for line in sorted(lines)]


def _constructions(tree: ast.AST, names: Collection[str]) -> list[str]:
    """The names of the functions that call these classes, once for each call."""
    scopes = _scopes(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in names]
    return [getattr(scopes.get(call), "name", "") for call in found]


def test_one_function_of_the_server_builds_each_start_once() -> None:
    built = [
        f"{path} {function}"
        for path in modules()
        if path.parts[0] != "controller_client"
        for function in _constructions(ast.parse((ROOT / path).read_text()), STARTS)
    ]
    assert built == [f"{START_WRITER} _start_message"] * len(STARTS)


def test_one_module_writes_the_state_of_a_session() -> None:
    others = [path for path in modules() if path != WRITER]
    assert [w for path in others for w in _writes(path, (ROOT / path).read_text())] == []


def test_the_writer_asks_the_table_in_one_place() -> None:
    tree = ast.parse((ROOT / WRITER).read_text())
    calls = [_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [calls.count(name) for name in ("check_transition", "row_swap", "row_insert")] == [1] * 3
    assert not ({"row_update", "update"} | CREATES | SAVES) & set(calls)
    assert list(_sql_writes(tree)) == []


@pytest.mark.parametrize(
    "text",
    [
        "CommandSession.objects.filter(id=1).update(state='SENT')",
        "rows.update(pid=1, state=SENT)",
        "rows.update(**{'state': SENT})",
        "def f():\n    changes = {'state': SENT}\n    rows.update(**changes)",
        "def f():\n    changes = {}\n    changes['state'] = SENT\n    rows.update(**changes)",
        "def f():\n    changes = dict(state=SENT)\n    rows.update(**changes)",
        "session.state = 'SENT'\nsession.save()",
        "session.state, pid = 'SENT', 1",
        "async def f():\n    await rows.aupdate(state='SENT')",
        "session.save(update_fields=['state'])",
        "setattr(session, 'state', 'SENT')",
        "CommandSession(state='RUNNING')",
        "CommandSession.objects.create(command='cat')",
        "CommandSession.objects.bulk_create(rows)",
        "CommandSession.objects.bulk_update(rows, ['state'])",
        "row_update(CommandSession, key, state='SENT')",
        "row_swap(CommandSession, key, expected={}, values={'state': 'SENT'})",
        "row_insert(CommandSession(command='cat'))",
        "row = CommandSession(command='cat')\nrow_insert(row)",
        "X = 'UPDATE projects_commandsession SET state = %s WHERE id = %s'",
        'X = \'update "projects_commandsession" set pid = %s, "state" = %s where id = %s\'',
        "X = f'UPDATE projects_commandsession SET {columns} WHERE id = %s'",
        "X = 'UPDATE projects_commandsession SET pid = %s{more} WHERE id = %s'",
        "X = ', state = %s, started_at = %s'",
        "X = 'INSERT INTO projects_commandsession (id) VALUES (%s)'",
        "X = 'INSERT OR REPLACE INTO projects_commandsession VALUES (%s)'",
        "X = 'UPDATE projects_commandsession ' 'SET state = %s WHERE id = %s'",
    ],
)
def test_each_way_to_write_the_state_would_be_found(text: str) -> None:
    assert _writes(Path("projects/other.py"), text)


@pytest.mark.parametrize(
    "text",
    [
        "CommandSession.objects.filter(state='SENT').update(pid=1)",
        "CommandSession.objects.filter(id=1, state__in=ACTIVE).update(ended_by=actor)",
        "X = 'UPDATE projects_commandsession SET terminal_state = %s WHERE id = %s AND state = %s'",
        "X = 'SELECT state FROM projects_commandsession WHERE controller_id = %s AND state = %s'",
        "def f():\n    return {'state': session.state}",
        "self.state = SessionState(row[1])",
    ],
)
def test_reading_the_state_is_no_finding(text: str) -> None:
    assert _writes(Path("projects/other.py"), text) == []


def test_states_of_other_rows_are_no_finding() -> None:
    path = Path("agent/runs/records.py")
    assert _writes(path, "AgentRun.objects.filter(id=1).update(state='QUEUED')") == []
    assert _writes(path, "CommandSession.objects.filter(id=1).update(state='SENT')")
    assert _writes(path, "X = 'UPDATE projects_commandsession SET state = %s WHERE id = %s'")
