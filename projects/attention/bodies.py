"""The bodies of messages: names, times and links, in the form that each way of sending wants.

Output, typed input and prompts are never in them. A target ``has_texts`` only if its operator wants
the words of prompts and callers to be sent.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from projects.conf import conf
from projects.models import AttentionEvent, AttentionTarget
from projects.models.attention_kinds import RESOLVED, TITLES

MOST_LISTED: Final = 20
"""A message names so many events, and counts the others."""
LIST_PATH: Final = "/attention/"
_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """One event as a message tells it."""

    event: AttentionEvent
    host: str
    text: str = ""

    @property
    def link(self) -> str:
        """The address of the page about the event."""
        return f"{conf.public_url}/attention/{self.event.id}/"

    @property
    def line(self) -> str:
        """The event in one line."""
        title = title_of(self.event.kind, 1)
        parts = [title, f"on {self.host}" if self.host else "", self.event.resolution]
        return " · ".join(part for part in (*parts, self.text) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The content of one message: events of one kind, or events of one kind that have ended."""

    kind: str
    project: str
    count: int
    told: Sequence[ToldEvent] = field(default_factory=tuple)

    @property
    def title(self) -> str:
        """The message in a few words."""
        if self.kind == RESOLVED and self.told:
            return f"Settled: {title_of(self.told[0].event.kind, self.count)}"
        return title_of(self.kind, self.count)

    @property
    def link(self) -> str:
        """The page about the one event, or the list of what waits."""
        return self.told[0].link if self.count == 1 and self.told else conf.public_url + LIST_PATH


def title_of(kind: str, count: int) -> str:
    """The words for ``count`` events of a kind."""
    one, many = TITLES[kind]
    return one if count == 1 else f"{count} {many}"


def body_of(target: AttentionTarget, news: News, address: str) -> str:
    """The text that is sent to a target, and stays the same for every attempt."""
    match target.way:
        case AttentionTarget.Way.SLACK:
            return json.dumps({"text": _slack(news)})
        case AttentionTarget.Way.NTFY:
            return json.dumps(_ntfy(news, address))
        case AttentionTarget.Way.EMAIL:
            return json.dumps({"subject": f"[Holdline] {_headline(news)}", "text": _plain(news)})
    return json.dumps(_webhook(news), separators=(",", ":"))


def _headline(news: News) -> str:
    return f"{news.project}: {news.title}"


def _webhook(news: News) -> dict[str, object]:
    return {
        "type": f"attention.{news.kind}",
        "data": {
            "project": news.project,
            "count": news.count,
            "title": news.title,
            "link": news.link,
            "events": [_facts(told) for told in news.told],
        },
    }


def _facts(told: ToldEvent) -> dict[str, object]:
    event = told.event
    facts = {
        "id": str(event.id),
        "kind": event.kind,
        "host": told.host,
        "session": str(event.session_id or ""),
        "raised_at": event.raised_at.isoformat(),
        "resolved_at": event.resolved_at.isoformat() if event.resolved_at else "",
        "resolution": event.resolution,
        "link": told.link,
        "text": told.text,
    }
    return {name: value for name, value in facts.items() if value}


def _slack(news: News) -> str:
    lines = [f"*{_headline(news).translate(_SLACK_ESCAPES)}*"]
    lines += [f"• <{told.link}|{_slack_words(told.line)}>" for told in news.told]
    return "\n".join([*lines, *_rest(news)])


def _slack_words(line: str) -> str:
    return line.translate(_SLACK_ESCAPES).replace("|", "/")


def _ntfy(news: News, address: str) -> dict[str, object]:
    topic = urlsplit(address).path.rstrip("/").rpartition("/")[2]
    lines = [told.line for told in news.told] or [news.title]
    return {
        "topic": topic,
        "title": _headline(news),
        "message": "\n".join([*lines, *_rest(news)]),
        "click": news.link,
    }


def _plain(news: News) -> str:
    lines = [f"{told.line}\n  {told.link}" for told in news.told] or [news.link]
    return "\n".join([*lines, *_rest(news)])


def _rest(news: News) -> list[str]:
    left = news.count - len(news.told)
    return [f"and {left} more: {conf.public_url}{LIST_PATH}"] if news.told and left > 0 else []
