"""The content of messages: names, times and links, and the form that each way of sending wants.

Output, typed input and prompts are never in them. A target ``has_texts`` only if its operator wants
the words of prompts and callers to be sent.

A row keeps the facts. They get the form of the target as it is when they are sent, so that a row
holds no part of its address, and none is sent in the form or with the words of an earlier one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, Self
from urllib.parse import urlsplit

from projects.conf import conf
from projects.models import AttentionEvent, AttentionTarget
from projects.models.attention_kinds import RESOLVED, TITLES
from projects.secrets.masks import mask_of

MOST_LISTED: Final = 20
"""A message names so many events, and counts the others."""
LIST_PATH: Final = "/attention/"
TEXT_CHARS: Final = 200
_TYPE: Final = "attention."
_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

Facts = Mapping[str, str]
"""What a message tells of one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The facts of one message: events of one kind, or events of one kind that have ended."""

    kind: str
    project: str
    count: int
    title: str
    link: str
    events: Sequence[Facts]

    @classmethod
    def of(
        cls,
        project: str,
        kind: str,
        events: Sequence[AttentionEvent],
        count: int,
        *,
        has_texts: bool,
    ) -> Self:
        """The facts of ``count`` events, of which the first are named."""
        listed = [_facts(event, has_texts=has_texts) for event in events[:MOST_LISTED]]
        title = title_of(kind, count)
        if kind == RESOLVED and events:
            title = f"Settled: {title_of(events[0].kind, count)}"
        link = listed[0]["link"] if count == 1 and listed else conf.public_url + LIST_PATH
        return cls(kind=kind, project=project, count=count, title=title, link=link, events=listed)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The facts as a row keeps them; None for a text of an earlier release, which has none."""
        kept = json.loads(text) if text else {}
        if "data" not in kept:
            return None
        return cls(kind=kept["type"].removeprefix(_TYPE), **kept["data"])

    @property
    def text(self) -> str:
        """The facts as a row keeps them, and as a webhook gets them."""
        data = asdict(self)
        kind = data.pop("kind")
        return json.dumps({"type": f"{_TYPE}{kind}", "data": data}, separators=(",", ":"))

    @property
    def headline(self) -> str:
        """The message in a few words, with its project."""
        return f"{self.project}: {self.title}"

    @property
    def rest(self) -> list[str]:
        """The line about the events that are not named, if there are any."""
        left = self.count - len(self.events)
        return (
            [f"and {left} more: {conf.public_url}{LIST_PATH}"] if self.events and left > 0 else []
        )


def title_of(kind: str, count: int) -> str:
    """The words for ``count`` events of a kind."""
    one, many = TITLES[kind]
    return one if count == 1 else f"{count} {many}"


def body_of(target: AttentionTarget, news: News, address: str) -> str:
    """The text that is sent. It stays the same for every attempt, unless the target changes."""
    if not target.has_texts:
        events = [{key: each[key] for key in each if key != "text"} for each in news.events]
        news = replace(news, events=events)
    match target.way:
        case AttentionTarget.Way.SLACK:
            return json.dumps({"text": _slack(news)})
        case AttentionTarget.Way.NTFY:
            return json.dumps(_ntfy(news, address))
        case AttentionTarget.Way.EMAIL:
            return json.dumps({"subject": f"[Holdline] {news.headline}", "text": _plain(news)})
    return news.text


def _facts(event: AttentionEvent, *, has_texts: bool) -> Facts:
    facts = {
        "id": str(event.id),
        "kind": event.kind,
        "host": "" if event.controller is None else event.controller.name,
        "session": str(event.session_id or ""),
        "raised_at": event.raised_at.isoformat(),
        "resolved_at": event.resolved_at.isoformat() if event.resolved_at else "",
        "resolution": event.resolution,
        "link": f"{conf.public_url}/attention/{event.id}/",
        "text": _text(event) if has_texts else "",
    }
    return {name: value for name, value in facts.items() if value}


def _text(event: AttentionEvent) -> str:
    """The words of the caller, or else what the terminal asks; secrets are masked."""
    session = event.session
    if session is None:
        return event.wanted
    asked = session.terminal_prompt if "asks_for" in event.detail else ""
    return mask_of(session.id, session.sealed_secrets).masked(event.wanted or asked)[:TEXT_CHARS]


def _line(facts: Facts) -> str:
    host = f"on {facts['host']}" if "host" in facts else ""
    parts = (title_of(facts["kind"], 1), host, facts.get("resolution"), facts.get("text"))
    return " · ".join(part for part in parts if part)


def _slack(news: News) -> str:
    lines = [f"*{news.headline.translate(_SLACK_ESCAPES)}*"]
    lines += [f"• <{facts['link']}|{_slack_words(_line(facts))}>" for facts in news.events]
    return "\n".join([*lines, *news.rest])


def _slack_words(line: str) -> str:
    return line.translate(_SLACK_ESCAPES).replace("|", "/")


def _ntfy(news: News, address: str) -> Facts:
    lines = [_line(facts) for facts in news.events] or [news.title]
    return {
        "topic": urlsplit(address).path.rstrip("/").rpartition("/")[2],
        "title": news.headline,
        "message": "\n".join([*lines, *news.rest]),
        "click": news.link,
    }


def _plain(news: News) -> str:
    lines = [f"{_line(facts)}\n  {facts['link']}" for facts in news.events] or [news.link]
    return "\n".join([*lines, *news.rest])
