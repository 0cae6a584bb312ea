"""The road of a typed text through the server is short: few functions from the tool to its row.

The test looks at the stack of a real call twice: in the event loop, when the call hands its work to
a database thread, and in that thread, when SQLite is given the row of the input. So it counts each
function that the text is inside of on its way, whatever its name. It does not count helpers, which
have returned by then, and the loop of the thread, which waited there before the call.
"""

import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final
from uuid import UUID

import pytest
from django.db import connection

from projects.accounts.authentication import Caller
from projects.models import Controller
from projects.secrets.store import secret_set
from projects.secrets.terms import Terms
from projects.storage.access import in_database
from projects.tools.registry import tool_named
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

ROOT: Final = Path(__file__).resolve().parents[3]
MOST_FUNCTIONS: Final = 12
TOOL: Final = "projects/tools/base.py Tool.call"
ROW: Final = "INSERT INTO projects_controllercommand"


@dataclass
class _Road:
    """The functions that were running when a call was handed over, and when it wrote its row."""

    in_loop: list[str] = field(default_factory=list)
    in_thread: list[str] = field(default_factory=list)
    _waiting: list[FrameType] = field(default_factory=list)

    def functions(self) -> list[str]:
        """The functions after ``Tool.call``, outermost first."""
        return [*self.in_loop[self.in_loop.index(TOOL) + 1 :], *self.in_thread]

    def watch_loop(self, frame: FrameType, event: str, called: Any) -> None:
        """For ``sys.setprofile``, in the thread of the event loop."""
        if _is_of_queue(event, called, "put") and not self.in_thread:
            self.in_loop = [_name(each) for each in _stack(frame)]

    def watch_thread(self, frame: FrameType, event: str, called: Any) -> None:
        """For ``sys.setprofile``, in the database thread."""
        if _is_of_queue(event, called, "get") and not self.in_thread:
            self._waiting = _stack(frame)

    def on_statement(self, statement: str) -> None:
        """For SQLite, which calls this with each statement that it is given."""
        if statement.strip().startswith(ROW) and not self.in_thread:
            before = set(map(id, self._waiting))
            running = _stack(sys._getframe(1))
            self.in_thread = [_name(each) for each in running if id(each) not in before]


def _is_of_queue(event: str, called: Any, name: str) -> bool:
    is_call = event == "c_call" and called.__name__ == name
    return is_call and isinstance(called.__self__, SimpleQueue)


def _stack(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def _name(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename.removeprefix(f'{ROOT}/')} {code.co_qualname}"


def _trace(on_statement: Any, profile: Any) -> None:
    """Watch the database thread that this runs in, and its connection; with None no longer."""
    connection.connection.set_trace_callback(on_statement)
    sys.setprofile(profile)


async def _road_of(caller: Caller, arguments: dict[str, Any]) -> list[str]:
    road = _Road()
    await in_database(_trace, road.on_statement, road.watch_thread)
    sys.setprofile(road.watch_loop)
    try:
        outcome = await tool_named("send_command_input").call(arguments, caller)
    finally:
        sys.setprofile(None)
        await in_database(_trace, None, None)
    assert not outcome.is_error, outcome.text
    return road.functions()


def _store_secret(controller: Controller) -> None:
    terms = Terms(controllers=frozenset({controller.id}))
    secret_set(project=controller.project, name="sudo", value="hunter2!", terms=terms, actor="ada")


@pytest.mark.parametrize("typed", [{"input_text": "Ada\n"}, {"keys": ["up"]}, {"secret": "sudo"}])
async def test_a_typed_text_passes_few_functions_and_mypy_sees_each(
    controller: Controller, project_id: UUID, host: ActingHost, typed: dict[str, Any]
) -> None:
    session = await in_database(make_session, controller)
    await in_database(_store_secret, controller)
    scopes = frozenset({"session:input", "secret:use", "shell:any"})
    caller = Caller(project_id, "token:agent", scopes)
    road = await _road_of(caller, {"session_id": str(session.id), "wait_seconds": 0, **typed})
    shown = "\n".join(road)
    assert len(road) <= MOST_FUNCTIONS, shown
    for part in (
        "tools/send_command_input.py _handle",
        "sessions/transactions/input.py send_input",
    ):
        assert f"projects/{part}" in road, shown
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"]
    assert [each for each in road if each.partition("/")[0] not in mypy["packages"]] == []
