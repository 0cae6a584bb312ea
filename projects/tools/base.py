"""A tool: what it is called, what it takes and gives, who may call it, and the one way to call it.

``Tool.call`` validates, authorises, runs the handler, validates what it gave and maps every error to the one body. MCP, the agent
loop and the reference documentation read the same objects.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec
from pydantic import BaseModel, ConfigDict, ValidationError
from structlog.contextvars import bind_contextvars, bound_contextvars

from projects import metrics
from projects.authentication import ADMIN_SCOPE, Caller
from projects.errors import ControllerActionError, InvalidArgument, UnknownArgument
from projects.watching import calling

logger = logging.getLogger(__name__)


class ToolInput(BaseModel):
    """Arguments of a tool. Unknown ones are refused; values are never repeated in errors."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    def as_arguments(self) -> dict[str, Any]:
        """The fields by name, as they are. (``dict(model)`` stumbles over a field called ``keys``.)"""
        return vars(self).copy()


class ToolOutput(BaseModel):
    """Result of a tool, read from the attributes of what the service returned."""

    model_config = ConfigDict(from_attributes=True)


InputT = TypeVar("InputT", bound=ToolInput)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """``body`` is the structured result, or the error body if ``is_error``."""

    body: dict[str, Any]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The same as JSON text."""
        try:
            return msgspec.json.encode(self.body).decode()
        except UnicodeEncodeError:
            # An error that repeats a name with a lone surrogate in it.
            return json.dumps(self.body, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[InputT]):
    """One tool. ``scopes`` are those a call may need, ``scopes_for`` those that a call with these arguments does need."""

    name: str
    title: str
    description: str
    guidance: str
    input_model: type[InputT]
    output_model: type[ToolOutput]
    handler: Callable[[InputT, Caller], Awaitable[Any]]
    scopes: tuple[str, ...]
    errors: tuple[type[ControllerActionError], ...]
    scopes_for: Callable[[InputT], tuple[str, ...]] | None = None
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    examples: tuple[Mapping[str, Any], ...] = field(default=())

    async def call(self, arguments: Mapping[str, Any] | None, caller: Caller) -> ToolOutcome:
        """Runs the tool. Never raises but for cancellation: everything else is an outcome."""
        with bound_contextvars(tool=self.name):
            outcome = await self._outcome(arguments, caller)
            if outcome.is_error:
                logger.info("refused: %s", outcome.body["code"])
        metrics.TOOL_CALLS.labels(self.name, outcome.body["code"] if outcome.is_error else "ok").inc()
        return outcome

    async def _outcome(self, arguments: Mapping[str, Any] | None, caller: Caller) -> ToolOutcome:
        try:
            model = self._validated(arguments or {})
            # Ids of monitors are whatever their callers chose, and stay out of the log.
            session_id = getattr(model, "session_id", None)
            if isinstance(session_id, UUID):
                bind_contextvars(session_id=str(session_id))
            for scope in self.scopes if self.scopes_for is None else self.scopes_for(model):
                caller.require(scope)
            with calling(caller):
                result = await self.handler(model, caller)
            return ToolOutcome(self.output_model.model_validate(result).model_dump(mode="json", by_alias=True))
        except ControllerActionError as error:
            return ToolOutcome(dict(error.body()), is_error=True)
        except Exception:
            # What happened is for the operator; a caller could do nothing with it, and it may hold what was typed.
            logger.exception("tool %s failed", self.name)
            return ToolOutcome(dict(ControllerActionError("the server failed to carry this out").body()), is_error=True)

    def is_open_to(self, caller: Caller) -> bool:
        """Whether the caller's scopes allow any call of this tool; a call may still need more of them."""
        held = caller.scopes
        if ADMIN_SCOPE in held or not self.scopes:
            return True
        return self.scopes[0] in held if self.scopes_for is None else not held.isdisjoint(self.scopes)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return _plain_schema(self.input_model.model_json_schema())

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """As callers write them."""
        return tuple(self.input_schema["properties"])

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the structured result."""
        return _plain_schema(self.output_model.model_json_schema(mode="serialization"))

    @property
    def full_description(self) -> str:
        """What a model reads before it chooses: what the tool does, then how to use it well."""
        return f"{self.description}\n\n{self.guidance}" if self.guidance else self.description

    @property
    def codes(self) -> tuple[str, ...]:
        """Error codes this tool may answer with beside those that every tool has."""
        return tuple(sorted({code for error in self.errors for code in error_codes(error)}))

    def _validated(self, arguments: Mapping[str, Any]) -> InputT:
        try:
            return self.input_model.model_validate(arguments)
        except ValidationError as invalid:
            problems = invalid.errors(include_url=False, include_context=False, include_input=False)
            unknown = [str(problem["loc"][0]) for problem in problems if problem["type"] == "extra_forbidden"]
            if unknown:
                raise UnknownArgument(self.name, [name[:64] for name in unknown], self.argument_names) from None
            raise InvalidArgument([_problem(dict(problem)) for problem in problems[:8]]) from None


COMMON_CODES: Final = (
    "CONTROLLER_ACTION_FAILED",
    "INVALID_ARGUMENT",
    "RATE_LIMITED",
    "SCOPE_MISSING",
    "STORAGE_UNAVAILABLE",
    "UNKNOWN_ARGUMENT",
)
"""Every tool may answer with these."""


def error_codes(error: type[ControllerActionError]) -> Iterator[str]:
    """The codes of one error class: its own, or those it takes from the host."""
    hints: Mapping[str, str] | None = getattr(error, "HINTS", None)
    if hints:
        yield from hints
    else:
        yield error.code


# pydantic's own words for these quote a piece of the value.
_WORDS: Final = {
    "uuid_parsing": "must be a uuid",
    "uuid_type": "must be a uuid",
    "datetime_from_date_parsing": "must be a date and time with zone, such as 2026-11-20T12:00:00Z",
    "datetime_parsing": "must be a date and time with zone, such as 2026-11-20T12:00:00Z",
}


def _problem(problem: Mapping[str, Any]) -> str:
    # Deeper parts of the location may be keys the caller chose; the argument's own name is enough.
    name = str(problem["loc"][0]) if problem["loc"] else "arguments"
    return f"{name}: {_WORDS.get(problem['type'], problem['msg'])}"


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without generated titles and references: what a model reads is smaller, and validators need no resolver."""
    definitions = schema.pop("$defs", {})

    def plain(node: Any, *, is_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            target = definitions[node["$ref"].rpartition("/")[2]]
            return plain({**target, **{key: value for key, value in node.items() if key != "$ref"}})
        kept = node.items() if is_properties else ((key, value) for key, value in node.items() if key != "title")
        return {key: plain(value, is_properties=key == "properties" and not is_properties) for key, value in kept}

    result: dict[str, Any] = plain(schema)
    # The class's docstring is for readers of the code.
    result.pop("description", None)
    return result
