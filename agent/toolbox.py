"""The tools as a run has them: which it is shown, what it may do with them, and a call that a resumed run can repeat.

A call carries a ``request_id`` made of run, step and place: made again after a crash, it finds what it did and does nothing twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid5

from agent.conversation import Call, OfferedTool
from projects.authentication import AGENT_SCOPES, Caller
from projects.errors import UnknownTool
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
            "success": {"type": "boolean", "description": "Whether the task is done, as far as you have checked."},
            "summary": {"type": "string", "description": "What was done and how it was checked, or why it cannot be done."},
        },
        "required": ["success", "summary"],
        "additionalProperties": False,
    },
)
_REQUEST_IDS: Final = ("request_id", "requestId")
_HANDLES: Final = ("session_id", "sessionId", "token")


@dataclass
class Toolbox:
    """The tools of one run. ``sessions`` are those it has started: a run that is bound to controllers may touch no others."""

    run_id: UUID
    project_id: UUID
    controllers: tuple[str, ...]
    output_bytes: int
    sessions: set[str] = field(default_factory=set)

    @property
    def caller(self) -> Caller:
        """How tools and audit rows know the run."""
        return Caller(project_id=self.project_id, label=f"agent:{self.run_id}", scopes=frozenset(AGENT_SCOPES), toolsets=TOOLSETS)

    def offered(self) -> list[OfferedTool]:
        """What a model is shown."""
        shown = [OfferedTool(tool.name, tool.full_description, _schema(tool)) for tool in tools_for(self.caller)]
        return [*shown, FINISH_TOOL]

    async def carry_out(self, call: Call, *, step_number: int, index: int) -> ToolOutcome:
        """Makes the call; everything that is wrong with it is an outcome too."""
        if call.arguments is None:
            return _refusal("MALFORMED_ARGUMENTS", "the arguments are not a JSON object", "Send the call again with valid JSON.")
        if call.name == FINISH:
            return _refusal("INVALID_ARGUMENT", "finish_task needs success (true or false) and summary", "Call it again with both.")
        try:
            tool = tool_for(call.name, self.caller)
        except UnknownTool as unknown:
            return ToolOutcome(dict(unknown.body()), is_error=True)
        arguments = dict(call.arguments)
        if (refusal := self._bind(tool, arguments)) is not None:
            return refusal
        for name in _REQUEST_IDS:
            if name in tool.argument_names:
                arguments[name] = str(uuid5(self.run_id, f"{step_number}.{index}"))
        if "max_output_bytes" in tool.argument_names:
            arguments["max_output_bytes"] = _at_most(arguments.get("max_output_bytes"), self.output_bytes)
        outcome = await tool.call(arguments, self.caller)
        self.remember(outcome.body)
        return outcome

    def remember(self, body: Mapping[str, Any]) -> None:
        """Notes the session a result is about."""
        self.sessions |= {str(body[name]) for name in _HANDLES if body.get(name)}

    def _bind(self, tool: Tool[Any], arguments: dict[str, Any]) -> ToolOutcome | None:
        """Keeps the call within the run's controllers."""
        if not self.controllers:
            return None
        if "controller" in tool.argument_names:
            if len(self.controllers) == 1:
                arguments.setdefault("controller", self.controllers[0])
            if arguments.get("controller") not in self.controllers:
                return _refusal("CONTROLLER_NOT_OF_RUN", "this run may not use that controller", f"Use {', '.join(self.controllers)}.")
        for name in _HANDLES:
            if name in arguments and str(arguments[name]) not in self.sessions:
                return _refusal("SESSION_NOT_OF_RUN", "this run did not start that session", "Use a session this run has started.")
        return None


def denied(reason: str) -> ToolOutcome:
    """What a model gets for a call a person said no to."""
    said = f": {reason}" if reason else ""
    hint = "Do not try to do the same by another way. Go on without it, or call finish_task with success false and say why."
    return _refusal("DENIED_BY_OPERATOR", f"a person denied this call{said}", hint)


def _refusal(code: str, message: str, hint: str) -> ToolOutcome:
    return ToolOutcome({"error": message, "code": code, "hint": hint, "retryable": False}, is_error=True)


def _at_most(wanted: Any, limit: int) -> Any:
    # Anything but a number is the tool's to refuse.
    if wanted is None:
        return limit
    return min(wanted, limit) if isinstance(wanted, int) else wanted


def _schema(tool: Tool[Any]) -> dict[str, Any]:
    """Without what the run fills in itself."""
    schema = dict(tool.input_schema)
    filled_in = {*_REQUEST_IDS, "max_output_bytes"}
    schema["properties"] = {name: part for name, part in schema.get("properties", {}).items() if name not in filled_in}
    return schema
