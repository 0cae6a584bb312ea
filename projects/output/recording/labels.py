"""The words for an event in a list of markers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from projects.models import SessionEvent

Detail = Mapping[str, Any]
_CAUSES: Final = {"take_over": "an operator has the keyboard"}


def label_of(event: SessionEvent) -> str | None:
    """Return one line about the event; None if nobody needs to see it. It holds no typed text."""
    label = _LABELS.get(event.kind)
    return None if label is None else label(event.actor, event.detail)


def _prompt(_actor: str, detail: Detail) -> str | None:
    if detail.get("state") != "awaiting_input":
        return None
    text = str(detail.get("prompt", "")).strip()
    return f"prompt ({detail.get('kind')})" + (f": {text}" if text else "")


def _input(actor: str, detail: Detail) -> str:
    hidden = " (hidden)" if detail.get("hidden") else ""
    refused = f", refused: {detail['failure']}" if "failure" in detail else ""
    return f"input by {actor}{hidden}{refused}"


def _take_over(actor: str, _detail: Detail) -> str:
    return f"{actor} took over"


def _hand_back(actor: str, detail: Detail) -> str:
    note = f": {detail['note']}" if detail.get("note") else ""
    return f"{actor} handed back{note}"


def _approval(actor: str, detail: Detail) -> str:
    return f"{actor} {detail.get('answer')}: {detail.get('tool')}"


def _resize(_actor: str, detail: Detail) -> str:
    return f"{detail.get('cols')} columns, {detail.get('rows')} rows"


def _gap(_actor: str, detail: Detail) -> str:
    size = int(detail.get("to", 0)) - int(detail.get("from", 0))
    return f"gap: {size} bytes are gone ({detail.get('reason')})"


def _lifetime(_actor: str, detail: Detail) -> str:
    if detail.get("paused"):
        cause = str(detail.get("cause"))
        return f"the lifetime is paused ({_CAUSES.get(cause, cause)})"
    return "the lifetime runs on"


def _end(_actor: str, detail: Detail) -> str:
    code, signal = detail.get("exit_code"), detail.get("signal")
    how = f"exit code {code}" if code is not None else signal or detail.get("failure_code")
    return f"ended: {str(detail.get('state', '')).lower().replace('_', ' ')}, {how}"


_LABELS: Final[Mapping[str, Callable[[str, Detail], str | None]]] = {
    "prompt": _prompt,
    "input": _input,
    "take_over": _take_over,
    "hand_back": _hand_back,
    "approval": _approval,
    "resize": _resize,
    "gap": _gap,
    "lifetime": _lifetime,
    "end": _end,
}
