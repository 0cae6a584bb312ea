"""The news of a run since the last look, for somebody who follows it.

It has no state but what the follower was shown.
"""

from collections.abc import Iterator, Sequence

from agent.models import AgentRun, AgentStep
from agent.views.rendering import Line, approval_line, call_line, end_line, notes_of, result_lines
from projects.admin.parts.display import visible
from projects.models import Approval


class Follower:
    """One person who follows a run."""

    def __init__(self) -> None:
        self._step = 0
        self._spoken = ""
        self._notice = ""
        self._is_said = False
        self._told = 0
        self._calls = 0
        self._results = 0
        self._approvals: dict[int, str] = {}
        self._is_over = False

    def news(
        self, run: AgentRun, steps: Sequence[AgentStep], approvals: Sequence[Approval]
    ) -> Iterator[tuple[Line, bool]]:
        """Lines, and whether each continues the text before it."""
        for step in steps:
            if step.number <= self._step:
                continue
            yield from self._news_of(step)
            if not step.is_complete:
                break
            self._step, self._spoken, self._is_said = step.number, "", False
            self._told, self._calls, self._results = 0, 0, 0
        if run.notice != self._notice:
            self._notice = run.notice
            if run.notice:
                yield Line("note", visible(run.notice)), False
        if run.draft and not self._is_said:
            yield from self._told_on(run.said_next)
            yield from self._spoken_on(run.draft)
        for approval in approvals:
            if self._approvals.get(approval.pk) != approval.answer:
                self._approvals[approval.pk] = approval.answer
                yield approval_line(approval), False
        if run.ended_at is not None and not self._is_over:
            self._is_over = True
            yield end_line(run), False

    def _news_of(self, step: AgentStep) -> Iterator[tuple[Line, bool]]:
        if not self._is_said:
            if not self._spoken:
                yield from self._told_on(step.said_before)
            yield from self._spoken_on(step.text)
            # A warning of the server is stored with the answer, whose beginning was shown already.
            yield from self._told_on(step.said_before)
            self._is_said = True
        for index, call in enumerate(step.calls):
            if index >= self._calls:
                self._calls = index + 1
                yield call_line(call), False
            if index >= len(step.results):
                return
            if index >= self._results:
                self._results = index + 1
                yield from ((line, False) for line in result_lines(step.results[index]))

    def _told_on(self, said: Sequence[str]) -> Iterator[tuple[Line, bool]]:
        """The messages to the model that were not shown yet."""
        fresh = said[self._told :]
        self._told += len(fresh)
        yield from ((line, False) for line in notes_of(fresh))

    def _spoken_on(self, text: str) -> Iterator[tuple[Line, bool]]:
        """The part of ``text`` that was not shown yet. A question asked again begins anew."""
        goes_on = bool(self._spoken) and text.startswith(self._spoken)
        piece = text[len(self._spoken) :] if goes_on else text
        if piece:
            yield Line("text", visible(piece, keep="\n")), goes_on
        self._spoken = text
