"""Carries out one run: asks its model, makes its calls, stores both, and judges the progress.

Each answer and each result is a row before the next thing happens. So another worker can take the
run up at any point: an answer that was not stored was never acted on, and a call that was made
twice did its work once.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from agent.conf import conf
from agent.llm import context, scripted
from agent.llm.conversation import (
    Answer,
    Call,
    ContextTooLong,
    Conversation,
    Exchange,
    FinalFailure,
    ModelClient,
    TransientFailure,
)
from agent.llm.endpoint import EndpointClient
from agent.models import AgentRun, AgentStep
from agent.runs import answered_calls, judgement, records, unseen
from agent.runs.asking import policy_of, question_of
from agent.runs.prompt import instructions
from agent.runs.toolbox import FINISH, Toolbox
from projects.accounts.ages import made_since
from projects.accounts.permits import Permit
from projects.errors.base import Conflict, Forbidden, NotFound
from projects.errors.server import StorageUnavailable
from projects.policy.call_risk import AUTO
from projects.storage.access import in_database
from projects.tools.base import ToolOutcome
from projects.tools.holding import with_files

logger = logging.getLogger(__name__)

MOST_BACKOFF_SECONDS: Final = 60.0
MOST_INTERRUPTIONS: Final = 5
DRAFT_SECONDS: Final = 0.3
"""How often the model's text so far is stored while it answers."""
_STATE = AgentRun.State


@dataclass
class Ended(Exception):
    """The run is over, with this state and report."""

    state: str
    stop_reason: str
    report: str = ""
    is_successful: bool | None = None


class Parked(Exception):
    """The run waits for a person, and needs no worker until then."""


def client_for(name: str) -> ModelClient:
    """The client of a model by its name. Raises ModelNotUsable."""
    return scripted.ScriptedClient(name) if name.startswith("scripted:") else EndpointClient(name)


class AgentRunner:
    """Carries out one run that is held under ``lease``. ``make_client`` is called once."""

    def __init__(
        self, run_id: UUID, lease: UUID, make_client: Callable[[str], ModelClient] = client_for
    ) -> None:
        self.run_id, self.lease = run_id, lease
        self._make_client = make_client
        self._client: ModelClient | None = None
        self._window = conf.context_tokens

    async def drive(self) -> None:
        """Works until the run is over, waits for a person, or belongs to another worker.

        Raises nothing except for cancellation.
        """
        try:
            await self._drive()
        except records.LeaseLost:
            logger.info("run %s is another worker's now", self.run_id)
        except StorageUnavailable:
            # Nothing can be stored now. The lease expires, and the next worker finds all rows.
            logger.error("the database is away: run %s is left as it is", self.run_id)
        except Exception:
            # A border: any error ends this run, and must not end the worker with its other runs.
            logger.exception("run %s failed", self.run_id)
            await self._end(
                Ended(_STATE.FAILED, "worker_failed", "the worker failed; see the server's log")
            )
        finally:
            if self._client is not None:
                await self._client.close()

    async def _drive(self) -> None:
        try:
            while True:
                run, steps = await in_database(records.run_loaded, self.run_id)
                is_acting = bool(steps) and not steps[-1].is_complete
                _check(run, len(steps), is_acting=is_acting)
                toolbox = self._toolbox(run, steps)
                if is_acting:
                    await self._act(run, steps, toolbox)
                else:
                    await self._ask(run, steps, toolbox)
        except Ended as ended:
            await self._end(ended)
        except Parked:
            if not await in_database(records.run_parked, self.run_id, self.lease):
                # It was asked to stop meanwhile: the next look at its row ends it.
                await self._drive()

    async def _end(self, ended: Ended) -> None:
        try:
            await in_database(
                records.run_ended,
                self.run_id,
                self.lease,
                ended.state,
                stop_reason=ended.stop_reason,
                report=ended.report,
                is_successful=ended.is_successful,
            )
        except records.LeaseLost:
            logger.info("run %s is another worker's now", self.run_id)

    def _toolbox(self, run: AgentRun, steps: list[AgentStep]) -> Toolbox:
        toolbox = Toolbox(run.id, run.project_id, tuple(run.controllers), run.output_bytes)
        for step in steps:
            for result in step.results:
                toolbox.remember(result["body"])
        return toolbox

    # ---- ask -------------------------------------------------------------------------------------

    async def _ask(self, run: AgentRun, steps: list[AgentStep], toolbox: Toolbox) -> None:
        said, is_nudge = _judged(run, steps)
        said = [*run.said_next, *said]
        conversation = _conversation(run, steps, said, toolbox.names)
        answer = await self._answered(run, conversation, toolbox)
        hidden = await in_database(unseen.withheld, run.project_id, answer.calls, steps)
        await in_database(
            records.step_answered,
            *(self.run_id, self.lease),
            number=len(steps) + 1,
            said_before=said,
            is_nudge=is_nudge,
            answer=answer,
            hidden=hidden,
        )

    async def _answered(
        self, run: AgentRun, conversation: Conversation, toolbox: Toolbox
    ) -> Answer:
        """The model's answer, with retries."""
        failures = 0
        while True:
            try:
                fitting = context.fitted(conversation, window_tokens=self._window)
                if self._client is None:
                    # In a thread: the libraries take seconds to import, and would stop the event
                    # loop that answers callers.
                    self._client = await asyncio.to_thread(self._make_client, run.model)
                return await self._heard(self._client, fitting, toolbox)
            except context.DoesNotFit:
                raise Ended(
                    _STATE.FAILED,
                    ContextTooLong.stop_reason,
                    "the task does not fit into the model's window",
                ) from None
            except ContextTooLong as error:
                # The window is smaller than the setting says.
                self._window //= 2
                if self._window < 1000:
                    raise Ended(_STATE.FAILED, error.stop_reason, str(error)) from None
            except FinalFailure as error:
                raise Ended(_STATE.FAILED, error.stop_reason, str(error)) from None
            except TransientFailure as error:
                failures += 1
                if failures >= conf.model_attempts:
                    raise Ended(
                        _STATE.FAILED, error.stop_reason, f"{error} (asked {failures} times)"
                    ) from None
                logger.warning(
                    "run %s: no answer (%s), attempt %d", self.run_id, error.stop_reason, failures
                )
                pause = _pause(failures, error.retry_after_seconds)
                notice = (
                    f"no answer ({error.stop_reason}), attempt {failures} of "
                    f"{conf.model_attempts}, retry in {pause:.0f} s: {error}"
                )
                await in_database(records.run_noticed, self.run_id, self.lease, notice)
                await asyncio.sleep(pause)

    async def _heard(
        self, client: ModelClient, conversation: Conversation, toolbox: Toolbox
    ) -> Answer:
        """One attempt to get an answer. Its text so far is stored as it comes."""
        pieces: list[str] = []
        is_said = asyncio.Event()
        drafting = asyncio.create_task(
            self._write_drafts(pieces, is_said), name=f"drafts of {self.run_id}"
        )
        try:
            return await client.answer(conversation, toolbox.offered(), pieces.append)
        finally:
            # A draft that was stored after the answer would stay on the page.
            is_said.set()
            await drafting

    async def _write_drafts(self, pieces: list[str], is_said: asyncio.Event) -> None:
        written = 0
        # The write of the answer meets the same errors and handles them.
        with contextlib.suppress(records.LeaseLost, StorageUnavailable):
            while not is_said.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(is_said.wait(), DRAFT_SECONDS)
                if len(pieces) > written and not is_said.is_set():
                    written = len(pieces)
                    await in_database(records.run_drafted, self.run_id, self.lease, "".join(pieces))

    # ---- act -------------------------------------------------------------------------------------

    async def _act(self, run: AgentRun, steps: list[AgentStep], toolbox: Toolbox) -> None:
        """Makes the calls of the newest answer that have no result yet, and stores each result."""
        step = steps[-1]
        calls = answered_calls.calls_of(step)
        for index in range(len(step.results), len(calls)):
            call = calls[index]
            if call.name == FINISH and (ended := _finished(call)) is not None:
                raise ended
            is_hidden = await in_database(unseen.is_unseen, run.project_id, call, steps)
            began = asyncio.get_running_loop().time()
            # A run is stopped by a restore of the database. Of calls from before that nobody knows
            # whether they were made; those of later steps are new.
            with made_since(step.created_at):
                outcome = await self._outcome(run, steps, index, toolbox)
            seconds = round(asyncio.get_running_loop().time() - began, 3)
            result = {"body": outcome.body, "is_error": outcome.is_error, "seconds": seconds}
            place = (self.run_id, self.lease, steps, index)
            await in_database(records.step_result, *place, result, is_hidden=is_hidden)
        if not calls and step.text.strip():
            raise Ended(_STATE.FINISHED, "answered", step.text)
        await in_database(records.step_completed, self.run_id, self.lease, step)

    async def _outcome(
        self, run: AgentRun, steps: list[AgentStep], index: int, toolbox: Toolbox
    ) -> ToolOutcome:
        """Makes a call of the newest step once it is approved. Raises Parked until it is answered.

        A denial is an outcome for the model. Nobody is asked about a call that will be refused for
        its form.
        """
        step = steps[-1]
        call = answered_calls.calls_of(step)[index]
        permit = None
        if not toolbox.refuses(call):
            try:
                permit = await self._permit(run, steps, index, toolbox)
            except (Forbidden, Conflict, NotFound) as error:
                return ToolOutcome(dict(error.body()), is_error=True)
        return await toolbox.carry_out(call, step_number=step.number, index=index, permit=permit)

    async def _permit(
        self, run: AgentRun, steps: list[AgentStep], index: int, toolbox: Toolbox
    ) -> Permit | None:
        """Asks a person about the call if the policy says so. Returns None if no one has to be.

        Raises Parked while the person has not answered, and ApprovalDenied or ApprovalExpired.
        """
        await in_database(run.project.refresh_from_db, fields=["approvals", "run_approvals"])
        if policy_of(run) == AUTO:
            return None
        approved = await in_database(records.approved_steps, self.run_id)
        question = question_of(run, steps, index, toolbox, approved)
        if question is None:
            return None
        question = await with_files(question)
        asked = await in_database(records.approval_of, self.run_id, self.lease, question)
        if asked is None:
            return None
        if asked.is_pending:
            raise Parked
        return asked.require_approved()


def _check(run: AgentRun, steps: int, *, is_acting: bool) -> None:
    """Raises Ended if the run may not go on.

    Calls of an answer that was paid for are made beyond every limit but the time.
    """
    if run.stop_requested_by:
        raise Ended(_STATE.STOPPED, "stopped", f"stopped by {run.stop_requested_by}")
    if run.interruptions > MOST_INTERRUPTIONS:
        raise Ended(
            _STATE.FAILED,
            "worker_failed",
            f"{run.interruptions} workers in a row were lost during the same step",
        )
    reason = judgement.exhausted(run, steps)
    if reason is not None and (reason == judgement.OUT_OF_TIME or not is_acting):
        raise Ended(
            _STATE.FAILED,
            reason,
            f"the budget of the run is used up ({reason}); run_agent --resume can raise it",
        )


def _judged(run: AgentRun, steps: list[AgentStep]) -> tuple[list[str], bool]:
    """A message to the model about its lack of progress, and whether it is the one nudge.

    Raises Ended if the model is stuck again after its nudge, or its answers are cut off.
    """
    if judgement.is_cut_again([*(step.said_before for step in steps[1:]), run.said_next]):
        raise Ended(_STATE.FAILED, "answer_cut", f"{judgement.CUTS} answers in a row were cut off")
    since = [step for step in steps if step.number > run.nudged_at_step]
    happenings = [
        judgement.happening(call, result)
        for step in since
        for call, result in zip(step.calls, step.results, strict=False)
    ]
    silent = 0
    for step in since:
        silent = 0 if step.calls or step.text.strip() else silent + 1
    verdict = judgement.stuck(happenings, silent_answers=silent)
    if verdict is None:
        return (["Your answer was empty. Call a tool, or finish_task."] if silent else []), False
    if run.nudged_at_step:
        raise Ended(
            _STATE.FAILED,
            f"stuck_{verdict}",
            f"The model made no progress after a warning: {judgement.NUDGE[verdict]}",
        )
    return [judgement.NUDGE[verdict] + judgement.NUDGE_END], True


def _pause(failures: int, retry_after_seconds: float | None) -> float:
    if retry_after_seconds is not None:
        return min(retry_after_seconds, MOST_BACKOFF_SECONDS)
    pause = conf.model_backoff_seconds * 2.0 ** (failures - 1)
    return min(pause, MOST_BACKOFF_SECONDS) * random.SystemRandom().uniform(0.7, 1.3)


def _conversation(
    run: AgentRun, steps: list[AgentStep], said: list[str], names: frozenset[str]
) -> Conversation:
    marker = context.marker_of(run.id)

    def exchange(step: AgentStep) -> Exchange:
        bodies = [result["body"] for result in step.results]
        results = (context.framed(b, marker=marker, most_chars=run.output_bytes) for b in bodies)
        shorter = (context.shrunk(body, marker=marker) for body in bodies)
        answer = Answer(
            text=step.text, calls=tuple(Call(**call) for call in step.calls), native=step.native
        )
        return Exchange(
            said_before=tuple(step.said_before),
            answer=answer,
            results=tuple(results),
            shorter=tuple(shorter),
        )

    return Conversation(
        instructions=instructions(controllers=run.controllers, marker=marker, names=names),
        task=run.task,
        exchanges=[exchange(step) for step in steps],
        said_last=tuple(said),
    )


def _finished(call: Call) -> Ended | None:
    """The end of the run as the model declares it.

    None if its arguments are wrong: then the tools refuse the call.
    """
    given = call.arguments or {}
    success = given.get("success")
    if not isinstance(success, bool):
        return None
    reason = "done" if success else "gave_up"
    return Ended(_STATE.FINISHED, reason, str(given.get("summary", "")), success)
