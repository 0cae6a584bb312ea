"""Follow a run live until it is over or the reader leaves; on a terminal, answer its questions."""

import asyncio
import contextlib
import signal
import sys
from typing import Final
from uuid import UUID

from agent import services, worker
from agent.management.keyboard import LOOK_SECONDS, answered
from agent.models import AgentRun, AgentStep
from agent.runs.records import approvals_of
from agent.views.console import Console, JsonLines
from agent.views.following import Follower
from agent.views.rendering import Line
from projects.errors.base import ControllerActionError
from projects.errors.server import StorageUnavailable
from projects.management.naming import actor
from projects.models import Approval
from projects.sessions.approvals.answering import approval_answer
from projects.sessions.approvals.asking import link_to
from projects.storage.access import in_database

EXIT_DONE: Final = 0
EXIT_GAVE_UP: Final = 1
EXIT_FAILED: Final = 2
EXIT_STOPPED: Final = 3
EXIT_DETACHED: Final = 130


class Live:
    """One reader of one run.

    ``is_here``: this process carries the run out. ``can_ask``: a person is at the terminal.
    """

    def __init__(
        self, run_id: UUID, sink: Console | JsonLines, *, is_here: bool, can_ask: bool
    ) -> None:
        self.run_id, self._sink, self._is_here, self._can_ask = run_id, sink, is_here, can_ask
        self._follower = Follower()
        self._interrupted = asyncio.Event()
        self._told_of = 0
        self._refused: set[int] = set()

    async def to_its_end(self) -> int:
        """Follow the run to its end, or until the reader leaves; returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted.set)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._dismiss)
        working = asyncio.create_task(self._carried_on()) if self._is_here else None
        try:
            return await self._followed()
        finally:
            with contextlib.suppress(BrokenPipeError):
                self._sink.close()
            if working is not None:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working

    def _dismiss(self) -> None:
        # SIGTERM or SIGHUP: nobody is at the terminal any more, which is the same as detaching.
        self._can_ask = False
        self._interrupted.set()

    async def _carried_on(self) -> None:
        # ``carry_out`` returns whenever the run waits for a person or the database is away.
        while True:
            await worker.carry_out(self.run_id)
            await asyncio.sleep(LOOK_SECONDS)

    async def _followed(self) -> int:
        while True:
            try:
                run, steps, approvals = await in_database(_look, self.run_id)
            except StorageUnavailable:
                # The run continues when the database is back.
                if self._interrupted.is_set() and await self._is_left():
                    return EXIT_DETACHED
                await asyncio.sleep(LOOK_SECONDS)
                continue
            for line, goes_on in self._follower.news(run, steps, approvals):
                self._sink.write(line, goes_on=goes_on)
            if run.state in services.OVER:
                return _exit_code(run)
            pending = next(
                (one for one in approvals if one.answer == Approval.Answer.PENDING), None
            )
            if self._interrupted.is_set():
                if await self._is_left():
                    return EXIT_DETACHED
                continue
            may_ask = self._can_ask and pending is not None and pending.pk not in self._refused
            if pending is not None and may_ask and run.state == AgentRun.State.WAITING:
                await self._ask_about(pending)
            else:
                if pending is not None and not may_ask:
                    self._tell_where_to_answer(pending)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._interrupted.wait(), LOOK_SECONDS)

    def _tell_where_to_answer(self, pending: Approval) -> None:
        if pending.pk > self._told_of:
            self._told_of = pending.pk
            how = f"manage.py answer_approval {pending.pk} --approve (or --deny)"
            page = link_to(pending.pk)
            self._sink.write(
                Line("note", f"the run waits for an answer: use {page} in the console, or {how}")
            )

    async def _ask_about(self, approval: Approval) -> None:
        async def is_settled() -> bool:
            with contextlib.suppress(StorageUnavailable):
                await in_database(approval.refresh_from_db)
            is_open = approval.answer == Approval.Answer.PENDING
            return not is_open or self._interrupted.is_set() or await self._is_over()

        try:
            answer = await answered("approve? [y]es, or why not: ", is_settled)
        except EOFError:
            self._can_ask = False
            return
        if answer:
            is_approved = answer.lower() in {"y", "yes"}
            reason = "" if is_approved else answer
            try:
                await in_database(
                    approval_answer,
                    approval_id=approval.pk,
                    is_approved=is_approved,
                    actor=actor(),
                    reason=reason,
                )
            except StorageUnavailable as away:
                self._sink.write(Line("note", away.line()))
            except ControllerActionError as refusal:
                # Somebody else may answer it, so the run is followed all the same.
                self._refused.add(approval.pk)
                self._sink.write(Line("note", refusal.line()))

    async def _is_over(self) -> bool:
        """True once the run is over. While the database is away it is not known to be."""
        try:
            run = await in_database(lambda: AgentRun.objects.get(id=self.run_id))
        except StorageUnavailable:
            return False
        return run.state in services.OVER

    async def _is_left(self) -> bool:
        """Ask what Ctrl-C means, if there is somebody to ask; True if the reader leaves.

        The reader can leave while the database is away.
        """
        self._interrupted.clear()
        self._sink.close()
        answer = await self._choice() if self._can_ask else "d"
        said = "it goes on" if answer == "d" else "following the run again"
        try:
            if answer == "s":
                await in_database(services.run_stop, run_id=self.run_id, actor=actor())
                said = "stop requested"
            if answer == "d" and self._is_here:
                await in_database(services.run_reserve, run_id=self.run_id, is_reserved=False)
                said = "the server carries it on"
        except StorageUnavailable as away:
            said = away.line()
        leaves = answer == "d"
        how = f"; manage.py run_agent --follow {self.run_id}" if leaves else ""
        self._sink.write(Line("note", f"{said}{how}"))
        return leaves

    async def _choice(self) -> str:
        """The first letter of the answer. A second Ctrl-C, or the end of input, means detach."""

        async def is_settled() -> bool:
            return self._interrupted.is_set() or await self._is_over()

        try:
            answer = await answered("[d]etach, [s]top the run, or enter to go on: ", is_settled)
        except EOFError:
            return "d"
        return "d" if self._interrupted.is_set() else (answer or "")[:1].lower()


def can_ask() -> bool:
    """True if this process reads and writes a terminal, where a person can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _look(run_id: UUID) -> tuple[AgentRun, list[AgentStep], list[Approval]]:
    # The steps are read last, so that the row of the run is never newer than they are.
    run = AgentRun.objects.get(id=run_id)
    return run, list(run.steps.order_by("number")), list(approvals_of(run.pk))


def _exit_code(run: AgentRun) -> int:
    if run.state == AgentRun.State.FINISHED:
        return EXIT_GAVE_UP if run.is_successful is False else EXIT_DONE
    return EXIT_STOPPED if run.state == AgentRun.State.STOPPED else EXIT_FAILED
