"""The tools of a run: which the model is shown, what it may do with them, and retries of calls.

A call carries a ``request_id`` made of run, step and place. A worker that makes it again after a
crash finds what it did, and does nothing twice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid5

from agent.errors import ControllerNotOfRun, MalformedArguments, SessionNotOfRun
from agent.llm.conversation import Call, OfferedTool
from agent.runs.history import HANDLES
from agent.runs.records import caller_label
from projects.accounts.authentication import AGENT_SCOPES, Caller
from projects.accounts.permits import Permit
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument, UnknownTool
from projects.errors.shown_tools import showing
from projects.tools.base import Tool, ToolOutcome
from projects.tools.guidance import FINISHING
from projects.tools.toolsets import tool_for, tools_for

TOOLSETS: Final = ("agent", "oneshot", "background")
FINISH: Final = "finish_task"
FINISH_TOOL: Final = OfferedTool(
    FINISH,
    f"Ends the run. {FINISHING}",
    {
        "type": "object",
        "properties": {
            "success": {
                "type": "boolean",
                "description": "Whether the task is done, as far as you have checked.",
            },
            "summary": {
                "type": "string",
                "description": "What was done and how it was checked, or why it cannot be done.",
            },
        },
        "required": ["success", "summary"],
        "additionalProperties": False,
    },
)
_REQUEST_IDS: Final = ("request_id", "requestId")
_BYTES: Final = "max_output_bytes"


@dataclass
class Toolbox:
    """The tools of one run.

    ``sessions`` are the sessions that the run started. A run that is bound to controllers may use
    no others.
    """

    run_id: UUID
    project_id: UUID
    controllers: tuple[str, ...]
    output_bytes: int
    sessions: set[str] = field(default_factory=set)

    @property
    def caller(self) -> Caller:
        """The caller that tools and audit rows know the run by."""
        return Caller(
            project_id=self.project_id,
            label=caller_label(self.run_id),
            scopes=frozenset(AGENT_SCOPES),
            toolsets=TOOLSETS,
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of the registry's tools that the run has."""
        return frozenset(tool.name for tool in tools_for(self.caller))

    def offered(self) -> list[OfferedTool]:
        """The tools as the model is shown them."""
        names = self.names
        shown = [(tool, tool.shown_to(names)) for tool in tools_for(self.caller)]
        return [
            *(
                OfferedTool(tool.name, one.description, _schema(one.input_schema))
                for tool, one in shown
            ),
            FINISH_TOOL,
        ]

    def refuses(self, call: Call) -> bool:
        """Returns True if the call will be refused for its form alone.

        Nobody has to approve such a call.
        """
        if call.arguments is None or call.name == FINISH or not _is_text(call.arguments):
            return True
        try:
            return not tool_for(call.name, self.caller).accepts(call.arguments)
        except UnknownTool:
            return True

    def request_id(self, step_number: int, index: int) -> UUID:
        """The id under which a call of the run is carried out, however often it is made."""
        return uuid5(self.run_id, f"{step_number}.{index}")

    async def carry_out(
        self, call: Call, *, step_number: int, index: int, permit: Permit | None = None
    ) -> ToolOutcome:
        """Makes the call, approved by ``permit``. Whatever is wrong with it is an outcome, too."""
        if call.arguments is None:
            return _refused(
                MalformedArguments(
                    "the arguments are not a JSON object, or one that is nested too deeply",
                    "Send the call again with valid JSON.",
                )
            )
        if not _is_text(call.arguments):
            return _refused(
                MalformedArguments(
                    "the arguments contain a lone surrogate, which is no character",
                    "Send the call again without it.",
                )
            )
        if call.name == FINISH:
            return _refused(
                InvalidArgument(["finish_task needs success (true or false) and summary"])
            )
        with showing(self.names):
            request_id = self.request_id(step_number, index)
            return await self._make(call.name, dict(call.arguments), request_id, permit)

    async def _make(
        self, name: str, arguments: dict[str, Any], made_under: UUID, permit: Permit | None
    ) -> ToolOutcome:
        try:
            tool = tool_for(name, self.caller)
        except UnknownTool as unknown:
            return _refused(unknown)
        if (refusal := self._bind(tool, arguments)) is not None:
            return refusal
        for request_id in _REQUEST_IDS:
            if request_id in tool.argument_names:
                arguments[request_id] = str(made_under)
        if _BYTES in tool.argument_names:
            limit = _within(tool.input_schema["properties"][_BYTES], self.output_bytes)
            arguments[_BYTES] = _at_most(arguments.get(_BYTES), limit)
        outcome = await tool.call(arguments, self.caller.cleared(permit))
        self.remember(outcome.body)
        return outcome

    def remember(self, body: Mapping[str, Any]) -> None:
        """Notes the session that a result is about."""
        self.sessions |= {str(body[name]) for name in HANDLES if body.get(name)}

    def _bind(self, tool: Tool[Any], arguments: dict[str, Any]) -> ToolOutcome | None:
        """Refuses a call that leaves the controllers of the run."""
        if not self.controllers:
            return None
        if "controller" in tool.argument_names:
            # Null is as good as nothing there, as in a call over MCP.
            if len(self.controllers) == 1 and arguments.get("controller") is None:
                arguments["controller"] = self.controllers[0]
            if arguments.get("controller") not in self.controllers:
                return _refused(ControllerNotOfRun(self.controllers))
        for name in HANDLES:
            if name in arguments and str(arguments[name]) not in self.sessions:
                return _refused(SessionNotOfRun())
        return None


def _refused(error: ControllerActionError) -> ToolOutcome:
    return ToolOutcome(dict(error.body()), is_error=True)


def _is_text(arguments: Mapping[str, Any]) -> bool:
    """False for what no caller of the server could have sent: it has no encoding."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _at_most(wanted: Any, limit: int) -> Any:
    # The tool refuses anything but a number.
    if wanted is None:
        return limit
    return min(wanted, limit) if isinstance(wanted, int) else wanted


def _within(bounds: Mapping[str, Any], limit: int) -> int:
    """The limit of a run as the tool takes it. What the model is shown keeps to the run's own."""
    return min(max(limit, int(bounds["minimum"])), int(bounds["maximum"]))


def _schema(input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the arguments that the run fills in itself."""
    schema = dict(input_schema)
    filled_in = {*_REQUEST_IDS, _BYTES}
    schema["properties"] = {
        name: part for name, part in schema.get("properties", {}).items() if name not in filled_in
    }
    return schema
