"""Failures of endpoints: the libraries' errors as ModelFailure, with a hint of what to check."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.conf import conf
from agent.llm.conversation import (
    ContextTooLong,
    ModelBusy,
    ModelRefused,
    ModelSilent,
    ModelUnreachable,
)

_MOST_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class Wire:
    """A kind of endpoint, and the variables with its address and its key."""

    kind: str
    url_variable: str
    key_variable: str


WIRES: Final = {
    "openai": Wire("OpenAI's Chat Completions", "HOLDLINE_AGENT_OPENAI_URL", "OPENAI_API_KEY"),
    "anthropic": Wire("Anthropic's Messages", "HOLDLINE_AGENT_ANTHROPIC_URL", "ANTHROPIC_API_KEY"),
}
WHERE: Final = (
    "where the run is carried out: in the server's environment, or run_agent's with --here"
)


@contextlib.contextmanager
def translated(wire: Wire) -> Iterator[None]:
    """Raises ModelFailure for every error of the libraries inside the block."""
    from pydantic_ai import exceptions as theirs

    try:
        yield
    except theirs.ModelContextWindowExceededError as error:
        raise ContextTooLong(_said(error)) from error
    except (theirs.ModelRateLimitError, theirs.ModelUnavailableError) as error:
        raise ModelBusy(_said(error), error.retry_after) from error
    except (theirs.ModelTimeoutError, theirs.ModelRequestTimeout, TimeoutError) as error:
        raise ModelSilent(f"the model sent nothing for {conf.model_silence_seconds:g} s") from error
    except theirs.ModelAuthenticationError as error:
        raise ModelRefused(_said(error), hint=f"Check {wire.key_variable} {WHERE}.") from error
    except theirs.ModelNotFoundError as error:
        raise ModelRefused(
            _said(error), hint=f"Check the name of the model, and {wire.url_variable} {WHERE}."
        ) from error
    except theirs.ModelQuotaExceededError as error:
        raise ModelRefused(
            _said(error),
            hint=f"The account that {wire.key_variable} belongs to has no quota or credit left.",
        ) from error
    except (theirs.ModelRequestRejectedError, theirs.UserError) as error:
        raise ModelRefused(_said(error)) from error
    except theirs.ModelHTTPError as error:
        kind = ModelRefused if 400 <= error.status_code < 500 else ModelUnreachable
        raise kind(_said(error)) from error
    except theirs.ModelConnectionError as error:
        raise ModelUnreachable(
            _said(error), hint=f"Check {wire.url_variable} {WHERE}, and the network there."
        ) from error
    except (theirs.ModelAPIError, theirs.UnexpectedModelBehavior) as error:
        # Not a refusal by the model: the answer was none, or not in the expected form.
        hint = (
            f"If this happens every time, the address in {wire.url_variable} may not speak "
            f"{wire.kind} wire."
        )
        raise ModelUnreachable(_said(error), hint=hint) from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__.lstrip('_')}: {error}"[:_MOST_CHARS].rstrip(".")
