"""What a model is told and what it answers, in words of our own. An endpoint's client translates; rows and judgement know only these.

Failures of a model are a tree; ``stop_reason`` is what a run that ends by one is said to have ended with::

    ModelFailure
    ├── TransientFailure        asked again: ModelBusy, ModelUnreachable, ModelSilent
    └── FinalFailure            never asked again: ModelRefused, ModelNotUsable, ContextTooLong
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """A call the model wants made. ``arguments`` is None if what it sent is not a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer of a model. ``native`` is the same in the endpoint's form, to be shown to it again."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_cents: float = 0.0
    native: Any = None


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One step as the model is shown it: what was said to it, its answer, and the result of each call as text."""

    said_before: tuple[str, ...] = ()
    answer: Answer
    results: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """All that a model is shown for its next answer. ``said_last`` comes after the newest results."""

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

    async def answer(self, conversation: Conversation, tools: Sequence[OfferedTool], on_text: OnText) -> Answer:
        """The model's next answer. Raises ModelFailure."""

    async def close(self) -> None:
        """Gives connections back."""


class ModelFailure(Exception):
    """The model gave no usable answer; the text is for people and ends with the hint, which says what to look at."""

    stop_reason: ClassVar[str] = "model_failed"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)


class TransientFailure(ModelFailure):
    """The same question may be answered later; ``retry_after_seconds`` if the endpoint said when."""

    def __init__(self, message: str, retry_after_seconds: float | None = None, *, hint: str = "") -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message, hint=hint)


class ModelBusy(TransientFailure):
    """The endpoint limits the rate or is overloaded."""

    stop_reason = "model_busy"


class ModelUnreachable(TransientFailure):
    """The endpoint failed, or the connection to it did."""

    stop_reason = "model_unreachable"


class ModelSilent(TransientFailure):
    """Nothing came for too long."""

    stop_reason = "model_silent"


class FinalFailure(ModelFailure):
    """The same question will not be answered later either."""


class ModelRefused(FinalFailure):
    """The endpoint does not accept the request: key, quota, name of the model, or content."""

    stop_reason = "model_refused"


class ModelNotUsable(FinalFailure):
    """There is no such kind of model here, or what it needs is not installed or configured."""

    stop_reason = "model_not_usable"


class ContextTooLong(FinalFailure):
    """More was shown than fits into the model's window."""

    stop_reason = "context_full"
