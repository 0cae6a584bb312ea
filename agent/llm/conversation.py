"""The messages to a model and its answers, independent of its endpoint.

The client of an endpoint translates them; rows and judgement know only these. Failures of a model
are a tree. ``stop_reason`` is the reason that a run is ended with by such a failure::

    ModelFailure
    ├── TransientFailure        retried: ModelBusy, ModelUnreachable, ModelSilent
    └── FinalFailure            never retried: ModelRefused, ModelNotUsable, ContextTooLong
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from controller_client.protocol.sentences import sentences


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model makes. ``arguments`` is None if it sent no JSON object.

    None stands for one that is nested too deeply, too.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer of a model.

    ``native`` is the same answer in the endpoint's form, to be sent to it again. ``cut_by`` says
    what ended it too early; empty for a whole answer.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_cents: float = 0.0
    native: Any = None
    cut_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One step as the model is shown it: messages, its answer, and the result of each call.

    ``shorter`` are the same results with less in them, for a conversation that does not fit.
    """

    said_before: tuple[str, ...] = ()
    answer: Answer
    results: tuple[str, ...] = ()
    shorter: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Everything that a model is shown for its next answer.

    ``said_last`` are the messages after the newest results.
    """

    instructions: str
    task: str
    exchanges: Sequence[Exchange] = ()
    said_last: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as models are shown it."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)


OnText = Callable[[str], None]
"""Called with each piece of text as it comes."""


class ModelClient(Protocol):
    """One model behind one endpoint."""

    async def answer(
        self, conversation: Conversation, tools: Sequence[OfferedTool], on_text: OnText
    ) -> Answer:
        """The model's next answer. ``on_text`` gets its text as it comes. Raises ModelFailure."""

    async def close(self) -> None:
        """Closes the connections of the client."""


class ModelFailure(Exception):
    """The model gave no usable answer.

    The text is for people. It ends with the hint, which says what to check.
    """

    stop_reason: ClassVar[str] = "model_failed"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(sentences(message, hint) if hint else message)


class TransientFailure(ModelFailure):
    """A retry may succeed, after ``retry_after_seconds`` if the endpoint said so."""

    def __init__(
        self, message: str, retry_after_seconds: float | None = None, *, hint: str = ""
    ) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message, hint=hint)


class ModelBusy(TransientFailure):
    """The endpoint limits the rate or is overloaded."""

    stop_reason = "model_busy"


class ModelUnreachable(TransientFailure):
    """The endpoint failed, or the connection to it did."""

    stop_reason = "model_unreachable"


class ModelSilent(TransientFailure):
    """The endpoint sent nothing for too long."""

    stop_reason = "model_silent"


class FinalFailure(ModelFailure):
    """A retry of the same question cannot succeed."""


class ModelRefused(FinalFailure):
    """The endpoint does not accept the request: key, quota, name of the model, or content."""

    stop_reason = "model_refused"


class ModelNotUsable(FinalFailure):
    """There is no such kind of model, or its library or its key is missing."""

    stop_reason = "model_not_usable"


class ContextTooLong(FinalFailure):
    """The conversation is larger than the model's window."""

    stop_reason = "context_full"
