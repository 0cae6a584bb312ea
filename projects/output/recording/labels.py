"""The words for an event in a list of markers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from projects.models import SessionEvent

Detail = Mapping[str, Any]


def label_of(event: SessionEvent) -> str | None:
    """Return one line about the event; None if it is no marker. It holds no typed text."""
    label = _LABELS.get(event.kind)
    return None if label is None else label(event.actor, event.detail)


def _prompt(_actor: str, detail: Detail) -> str | None:
    if detail.get("state") != "awaiting_input":
        return None
    return f"prompt ({detail.get('kind')}): {str(detail.get('prompt', '')).strip()}"


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


_LABELS: Final[Mapping[str, Callable[[str, Detail], str | None]]] = {
    "prompt": _prompt,
    "input": _input,
    "take_over": _take_over,
    "hand_back": _hand_back,
    "approval": _approval,
}
