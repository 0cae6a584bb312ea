"""A tool: what it is called, what it takes and gives, who may call it, and the one way to call it.

``Tool.call`` validates, authorises, waits for an approval if a policy wants one, runs the handler,
publishes its result and maps every error to the one body. MCP, the agent loop and the reference
documentation read the same objects.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from structlog.contextvars import bind_contextvars, bound_contextvars

from controller_client.protocol.sentences import sentences
from projects.accounts.authentication import ADMIN_SCOPE, Caller
from projects.errors.access import APPROVAL_ERRORS
from projects.errors.base import ControllerActionError
from projects.errors.calls import InvalidArgument, UnknownArgument
from projects.errors.server import StorageUnavailable
from projects.errors.shown_tools import TOOL_NAMES, fitting
from projects.output.result import Result
from projects.output.visible_values import shown_in
from projects.policy.call_risk import NEVER_ASKING
from projects.process import metrics
from projects.sessions.waiting import calling
from projects.tools.holding import held

logger = logging.getLogger(__name__)

_RAW_MEMBERS: Final = frozenset({"stdout", "stderr", "new_content"})
"""Members that a caller who asks for the raw view is given as they were printed."""


class ToolInput(BaseModel):
    """Arguments of a tool. Unknown ones are refused; values are never repeated in errors."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


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


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as a caller is shown it; its texts name only tools that this caller is shown."""

    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


# eq=False: a tool is the one object of its name, so it can be a key.
@dataclass(frozen=True, kw_only=True, eq=False)
class Tool(Generic[InputT]):
    """One tool.

    ``scopes`` are those a call may need, ``scopes_for`` those that a call with these arguments does
    need.

    ``description`` and ``guidance`` are written for callers that have all tools; ``shown_to`` is
    what a caller sees of them.

    ``renamed`` has the tool's own name of each argument that its service calls otherwise.
    """

    name: str
    title: str
    description: str
    guidance: str
    input_model: type[InputT]
    output_model: type[Result]
    handler: Callable[[InputT, Caller], Awaitable[Result]]
    scopes: tuple[str, ...]
    errors: tuple[type[ControllerActionError], ...]
    scopes_for: Callable[[InputT], tuple[str, ...]] | None = None
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = field(default=())

    async def call(self, arguments: Mapping[str, Any] | None, caller: Caller) -> ToolOutcome:
        """Runs the tool. Never raises but for cancellation: everything else is an outcome."""
        with bound_contextvars(tool=self.name):
            try:
                model = self._validated(arguments or {})
                # Ids of monitors are whatever their callers chose, and stay out of the log.
                session_id = getattr(model, "session_id", None)
                if isinstance(session_id, UUID):
                    bind_contextvars(session_id=str(session_id))
                for scope in self.scopes if self.scopes_for is None else self.scopes_for(model):
                    caller.require(scope)
                with calling(caller):
                    if caller.is_held:
                        model, caller = await held(self.name, model, caller)
                    result = await self.handler(model, caller)
                body = self._published.dump_python(result, mode="json", by_alias=True)
                raw = _RAW_MEMBERS if getattr(model, "view", None) == "raw" else frozenset()
                # Commands, names of processes and hosts, metadata: what others chose acts on
                # nobody's terminal.
                outcome = ToolOutcome(shown_in(body, raw))
            except ControllerActionError as error:
                outcome = self._refused(error)
            except MemoryError:
                # As when a database thread has none: the same call can succeed in a moment.
                logger.exception("tool %s had no memory", self.name)
                outcome = self._refused(StorageUnavailable())
            except Exception:
                # What happened is for the operator; a caller could do nothing with it, and it may
                # hold what was typed.
                logger.exception("tool %s failed", self.name)
                failed = ControllerActionError("the server failed to carry out this call")
                outcome = self._refused(failed)
        code = outcome.body["code"] if outcome.is_error else "ok"
        metrics.TOOL_CALLS.labels(self.name, code).inc()
        return outcome

    def _refused(self, error: ControllerActionError) -> ToolOutcome:
        """The outcome of a call that ended with ``error``."""
        if isinstance(error, InvalidArgument):
            error = self._as_called(error)
        logger.info("refused: %s", error.code)
        return ToolOutcome(shown_in(dict(error.body())), is_error=True)

    def accepts(self, arguments: Mapping[str, Any]) -> bool:
        """True if these arguments have the right form.

        A call with other arguments is refused before anything is done.
        """
        try:
            self._validated(arguments)
        except (InvalidArgument, UnknownArgument):
            return False
        return True

    def is_open_to(self, caller: Caller) -> bool:
        """True if the caller's scopes allow some call of this tool.

        A call may still need more scopes.
        """
        held = caller.scopes
        if ADMIN_SCOPE in held or not self.scopes:
            return True
        return (
            self.scopes[0] in held if self.scopes_for is None else not held.isdisjoint(self.scopes)
        )

    def shown_to(self, names: frozenset[str]) -> Definition:
        """The tool for a caller that is shown the tools called ``names``."""
        return _definition(self, names)

    @cached_property
    def _published(self) -> TypeAdapter[Result]:
        # Of an instance of a subclass, only the fields of the tool's own model are published.
        return TypeAdapter(self.output_model)

    # pydantic takes longer to make a schema than all takes that is done with it.
    @cached_property
    def input_model_schema(self) -> Mapping[str, Any]:
        """The schema of the arguments as pydantic makes it."""
        return self.input_model.model_json_schema()

    @cached_property
    def output_model_schema(self) -> Mapping[str, Any]:
        """The schema of the structured result as pydantic makes it."""
        return self.output_model.model_json_schema(mode="serialization")

    @cached_property
    def _definition(self) -> Definition:
        return self.shown_to(TOOL_NAMES)

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, for a caller that has all tools."""
        return self._definition.input_schema

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, as callers write them."""
        return tuple(self.input_schema["properties"])

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the structured result, for a caller that has all tools."""
        return self._definition.output_schema

    @property
    def full_description(self) -> str:
        """The text that a model reads before it chooses, if it has all tools.

        It says what the tool does, then how to use it well.
        """
        return self._definition.description

    @property
    def codes(self) -> tuple[str, ...]:
        """Error codes this tool may answer with beside those that every tool has."""
        held_by = () if self.name in NEVER_ASKING else APPROVAL_ERRORS
        errors = (*self.errors, *held_by)
        return tuple(sorted({code for error in errors for code in error_codes(error)}))

    def _validated(self, arguments: Mapping[str, Any]) -> InputT:
        try:
            return self.input_model.model_validate(arguments)
        except ValidationError as invalid:
            problems = invalid.errors(include_url=False, include_input=False)
            unknown = [
                str(problem["loc"][0])
                for problem in problems
                if problem["type"] == "extra_forbidden"
            ]
            if unknown:
                raise UnknownArgument(
                    self.name, [name[:64] for name in unknown[:_MOST_NAMED]], self.argument_names
                ) from None
            wrong = dict.fromkeys(
                str(problem["loc"][0]) for problem in problems[:_MOST_NAMED] if problem["loc"]
            )
            texts = [f"{name}: {text}" for name in wrong if (text := self._description_of(name))]
            raise InvalidArgument(
                [_problem(dict(problem)) for problem in problems[:_MOST_NAMED]], sentences(*texts)
            ) from None

    def _as_called(self, error: InvalidArgument) -> InvalidArgument:
        """The error with the names that arguments have in this tool."""
        problems = []
        for problem in error.problems:
            name, colon, text = problem.partition(":")
            problems.append(f"{self.renamed.get(name, name)}{colon}{text}")
        renamed = InvalidArgument(problems)
        renamed.hint = error.hint
        return renamed

    def _description_of(self, argument: str) -> str:
        text: str = self.input_schema["properties"].get(argument, {}).get("description", "")
        return text


def error_codes(error: type[ControllerActionError]) -> Iterator[str]:
    """The codes of one error class: its own, or those it takes from the host."""
    hints: Mapping[str, str] | None = getattr(error, "HINTS", None)
    if hints:
        yield from hints
    else:
        yield error.code


_MOST_NAMED: Final = 8
"""How many wrong arguments an error names."""
_DATE: Final = "must be a date and time with zone, such as 2026-11-20T12:00:00Z"
# In our words; pydantic's own for some of these quote a piece of the value.
_WORDS: Final = {
    "missing": "is required",
    "less_than_equal": "must be at most {le}",
    "greater_than_equal": "must be at least {ge}",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_type": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "string_unicode": "contains a lone surrogate, which is no character",
    "string_too_long": "must have at most {max_length} characters",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object of names and texts",
    "literal_error": "must be {expected}",
    "uuid_parsing": "must be a uuid",
    "uuid_type": "must be a uuid",
    "datetime_from_date_parsing": _DATE,
    "datetime_parsing": _DATE,
    "datetime_type": _DATE,
    "timezone_aware": _DATE,
}


def _problem(problem: Mapping[str, Any]) -> str:
    # Deeper parts of the location may be keys the caller chose; the argument's own name is enough.
    name = str(problem["loc"][0]) if problem["loc"] else "arguments"
    # The argument itself may be right, and only something inside it wrong.
    about = f"{name}: each value in it" if len(problem["loc"]) > 1 else f"{name}:"
    words = _WORDS.get(problem["type"])
    return f"{about} {problem['msg'] if words is None else words.format(**problem.get('ctx', {}))}"


@lru_cache(maxsize=1024)
def _definition(tool: Tool[Any], names: frozenset[str]) -> Definition:
    texts = (fitting(text, names) for text in (tool.description, tool.guidance))
    return Definition(
        description="\n\n".join(text for text in texts if text),
        input_schema=_plain_schema(tool.input_model_schema, names),
        output_schema=_plain_schema(tool.output_model_schema, names),
    )


def _plain_schema(schema: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The schema without generated titles and references.

    It is smaller for a model to read, and validators need no resolver.
    """
    definitions = schema.get("$defs", {})

    def plain(node: Any, *, is_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            target = definitions[node["$ref"].rpartition("/")[2]]
            return plain({**target, **{key: value for key, value in node.items() if key != "$ref"}})
        if is_properties:
            return {key: plain(value) for key, value in node.items()}
        return {
            key: fitting(value, names)
            if key == "description"
            else plain(value, is_properties=key == "properties")
            for key, value in node.items()
            if key != "title"
        }

    # The class's docstring is for readers of the code.
    unsaid = {"$defs", "description"}
    result: dict[str, Any] = plain({key: schema[key] for key in schema if key not in unsaid})
    return result
