"""Carries out one run: asks its model, makes the calls it wants, writes down both, and judges whether to go on.

Everything that matters is a row before the next thing happens, so a run can be taken up by another worker at any point: an answer that
is not written down was never acted on, and a call that was made twice did its work once.
"""

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from agent import context, judgement, records, risk
from agent.conf import conf
from agent.conversation import (
    Answer,
    Call,
    ContextTooLong,
    Conversation,
    Exchange,
    FinalFailure,
    ModelClient,
    TransientFailure,
)
from agent.endpoint import EndpointClient
from agent.models import AgentApproval, AgentRun, AgentStep, Approvals
from agent.prompt import instructions
from agent.scripted import ScriptedClient
from agent.toolbox import FINISH, Toolbox, denied
from projects.database import in_database
from projects.errors import StorageUnavailable
from projects.tools.base import ToolOutcome

logger = logging.getLogger(__name__)

MOST_BACKOFF_SECONDS: Final = 60.0
MOST_INTERRUPTIONS: Final = 5
DRAFT_SECONDS: Final = 0.3
"""How often what the model is saying is written down."""
_STATE = AgentRun.State


@dataclass
class Ended(Exception):
    """The run is over."""

    state: str
    stop_reason: str
    report: str = ""
    is_successful: bool | None = None


class Parked(Exception):
    """The run waits for a person, and needs no worker until then."""


def client_for(name: str) -> ModelClient:
    """The client of a model by its name. Raises ModelNotUsable."""
    return ScriptedClient(name) if name.startswith("scripted:") else EndpointClient(name)


class AgentRunner:
    """One run, held under ``lease``. ``make_client`` is asked once."""

    def __init__(self, run_id: UUID, lease: UUID, make_client: Callable[[str], ModelClient] = client_for) -> None:
        self.run_id, self.lease = run_id, lease
        self._make_client = make_client
        self._client: ModelClient | None = None
        self._window = conf.context_tokens

    async def drive(self) -> None:
        """Until the run is over, waits for a person, or is another's. Raises nothing but for cancellation."""
        try:
            await self._drive()
        except records.LeaseLost:
            logger.info("run %s is another worker's now", self.run_id)
        except StorageUnavailable:
            # Nothing can be written now. Its lease runs out, and whoever takes it up finds all that was.
            logger.error("the database is away: run %s is left as it is", self.run_id)
        except Exception:
            # The fourth border: whatever it was, the run says that it ended by it.
            logger.exception("run %s failed", self.run_id)
            await self._end(Ended(_STATE.FAILED, "worker_failed", "the worker failed; the server's log says more"))
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
            await in_database(records.run_parked, self.run_id, self.lease)

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

    # ---- ask ---------------------------------------------------------------------------------------------------------

    async def _ask(self, run: AgentRun, steps: list[AgentStep], toolbox: Toolbox) -> None:
        """One answer of the model, as a row."""
        said, is_nudge = _judged(run, steps)
        said = [*run.said_next, *said]
        conversation = _conversation(run, steps, said)
        answer = await self._answered(conversation, toolbox)
        hidden = {index for index, call in enumerate(answer.calls) if _is_hidden(call, steps)}
        await in_database(
            records.step_answered,
            *(self.run_id, self.lease),
            number=len(steps) + 1,
            said_before=said,
            is_nudge=is_nudge,
            answer=answer,
            hidden=hidden,
        )

    async def _answered(self, conversation: Conversation, toolbox: Toolbox) -> Answer:
        """The model's answer, asked for as often as it is worth it."""
        failures = 0
        while True:
            try:
                fitting = context.fitted(conversation, window_tokens=self._window)
                if self._client is None:
                    # In a thread: the libraries take seconds to import, and the process has callers.
                    self._client = await asyncio.to_thread(self._make_client, await in_database(_model_of, self.run_id))
                return await self._heard(self._client, fitting, toolbox)
            except context.DoesNotFit:
                raise Ended(_STATE.FAILED, ContextTooLong.stop_reason, "the task does not fit into the model's window") from None
            except ContextTooLong as error:
                # The window is smaller than it was set to be.
                self._window //= 2
                if self._window < 1000:
                    raise Ended(_STATE.FAILED, error.stop_reason, str(error)) from None
            except FinalFailure as error:
                raise Ended(_STATE.FAILED, error.stop_reason, str(error)) from None
            except TransientFailure as error:
                failures += 1
                if failures >= conf.model_attempts:
                    raise Ended(_STATE.FAILED, error.stop_reason, f"{error} (asked {failures} times)") from None
                logger.warning("run %s: no answer (%s), attempt %d", self.run_id, error.stop_reason, failures)
                pause = _pause(failures, error.retry_after_seconds)
                notice = f"no answer ({error.stop_reason}), attempt {failures} of {conf.model_attempts}, again in {pause:.0f} s: {error}"
                await in_database(records.run_noticed, self.run_id, self.lease, notice)
                await asyncio.sleep(pause)

    async def _heard(self, client: ModelClient, conversation: Conversation, toolbox: Toolbox) -> Answer:
        """One answer; what is said of it so far is a row, too."""
        pieces: list[str] = []
        is_said = asyncio.Event()
        drafting = asyncio.create_task(self._write_drafts(pieces, is_said), name=f"drafts of {self.run_id}")
        try:
            return await client.answer(conversation, toolbox.offered(), pieces.append)
        finally:
            # No draft may be written behind the answer.
            is_said.set()
            await drafting

    async def _write_drafts(self, pieces: list[str], is_said: asyncio.Event) -> None:
        written = 0
        # Whoever writes down the answer finds out by itself what is wrong.
        with contextlib.suppress(records.LeaseLost, StorageUnavailable):
            while not is_said.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(is_said.wait(), DRAFT_SECONDS)
                if len(pieces) > written and not is_said.is_set():
                    written = len(pieces)
                    await in_database(records.run_drafted, self.run_id, self.lease, "".join(pieces))

    # ---- act ---------------------------------------------------------------------------------------------------------

    async def _act(self, run: AgentRun, steps: list[AgentStep], toolbox: Toolbox) -> None:
        """The calls of the newest answer that have no result yet, one after the other; each result is a row before the next call."""
        step = steps[-1]
        calls = records.calls_of(step)
        for index in range(len(step.results), len(calls)):
            call = calls[index]
            if call.name == FINISH and (ended := _finished(call)) is not None:
                raise ended
            is_hidden = _is_hidden(call, steps)
            began = asyncio.get_running_loop().time()
            outcome = await self._permitted(run, steps, index, call)
            if outcome is None:
                outcome = await toolbox.carry_out(call, step_number=step.number, index=index)
            await self._note(step, outcome, asyncio.get_running_loop().time() - began, is_hidden=is_hidden)
        if not calls and step.text.strip():
            raise Ended(_STATE.FINISHED, "answered", step.text)
        await in_database(records.step_completed, self.run_id, self.lease, step)

    async def _note(self, step: AgentStep, outcome: ToolOutcome, seconds: float, *, is_hidden: bool = False) -> None:
        result = {"body": outcome.body, "is_error": outcome.is_error, "seconds": round(seconds, 3)}
        # NUL is in no database's text; views of output have none, other tools' may.
        storable = json.loads(json.dumps(result, default=str).replace("\\u0000", "\\ufffd"))
        await in_database(records.step_result, self.run_id, self.lease, step, storable, is_hidden=is_hidden)

    async def _permitted(self, run: AgentRun, steps: list[AgentStep], index: int, call: Call) -> ToolOutcome | None:
        """None if the call may be made, or what the model gets instead. Raises Parked while a person is asked."""
        if run.approvals == Approvals.AUTO:
            return None
        vouched = await in_database(records.approved_steps, self.run_id)
        assessed = risk.assess(
            call.name,
            call.arguments,
            prompt_kind=_prompt_kind(call, steps),
            is_vouched=_session_of(call) in _vouched_sessions(steps, vouched),
        )
        is_asked = assessed.risk in risk.RISKY or (run.approvals == Approvals.ASK_ALL and assessed.risk != "reading")
        if not is_asked:
            return None
        approval = await in_database(
            records.approval_of, self.run_id, self.lease, step=steps[-1], index=index, risk=assessed.risk, risk_reason=assessed.reason
        )
        if approval.answer == AgentApproval.Answer.PENDING:
            raise Parked
        return None if approval.answer == AgentApproval.Answer.APPROVED else denied(approval.reason)


def _check(run: AgentRun, steps: int, *, is_acting: bool) -> None:
    """Whether the run may go on. An answer that was paid for is acted on, but not beyond its time. Raises Ended."""
    if run.stop_requested_by:
        raise Ended(_STATE.STOPPED, "stopped", f"stopped by {run.stop_requested_by}")
    if run.interruptions > MOST_INTERRUPTIONS:
        raise Ended(_STATE.FAILED, "worker_failed", f"{run.interruptions} workers in a row were lost in the same step")
    budget = judgement.Budget(
        max_steps=run.max_steps, max_tokens=run.max_tokens, max_cost_cents=run.max_cost_cents, max_run_seconds=run.max_run_seconds
    )
    spent = judgement.Spent(steps=steps, tokens=run.input_tokens + run.output_tokens, cost_cents=run.cost_cents, seconds=run.worked_seconds)
    reason = judgement.exhausted(budget, spent)
    if reason is not None and (reason == judgement.OUT_OF_TIME or not is_acting):
        raise Ended(_STATE.FAILED, reason, f"the run's budget is used up ({reason}); run_agent --resume goes on with a larger one")


def _judged(run: AgentRun, steps: list[AgentStep]) -> tuple[list[str], bool]:
    """What the model is told because of how it goes, and whether that is the nudge of one that is stuck: it gets one. Raises Ended."""
    since = [step for step in steps if step.number > run.nudged_at_step]
    happenings = [_happening(call, result) for step in since for call, result in zip(step.calls, step.results, strict=False)]
    silent = 0
    for step in since:
        silent = 0 if step.calls or step.text.strip() else silent + 1
    verdict = judgement.stuck(happenings, silent_answers=silent)
    if verdict is None:
        return (["Your answer was empty. Call a tool, or finish_task."] if silent else []), False
    if run.nudged_at_step:
        raise Ended(_STATE.FAILED, f"stuck_{verdict}", f"The model was told, and went on like that: {judgement.NUDGE[verdict]}")
    return [judgement.NUDGE[verdict] + judgement.NUDGE_END], True


def _model_of(run_id: UUID) -> str:
    return AgentRun.objects.values_list("model", flat=True).get(id=run_id)


def _pause(failures: int, retry_after_seconds: float | None) -> float:
    if retry_after_seconds is not None:
        return min(retry_after_seconds, MOST_BACKOFF_SECONDS)
    pause = conf.model_backoff_seconds * 2.0 ** (failures - 1)
    return min(pause, MOST_BACKOFF_SECONDS) * random.uniform(0.7, 1.3)  # noqa: S311 - jitter, not a secret


def _conversation(run: AgentRun, steps: list[AgentStep], said: list[str]) -> Conversation:
    marker = context.marker_of(run.id)

    def exchange(step: AgentStep) -> Exchange:
        results = tuple(context.framed(result["body"], marker=marker, most_chars=run.output_bytes) for result in step.results)
        answer = Answer(text=step.text, calls=tuple(_call(call) for call in step.calls), native=step.native)
        return Exchange(said_before=tuple(step.said_before), answer=answer, results=results)

    return Conversation(
        instructions=instructions(controllers=run.controllers, marker=marker),
        task=run.task,
        exchanges=[exchange(step) for step in steps],
        said_last=tuple(said),
    )


def _call(stored: Mapping[str, Any]) -> Call:
    return Call(stored["id"], stored["name"], stored["arguments"])


def _happening(call: Mapping[str, Any], result: Mapping[str, Any]) -> judgement.Happening:
    return judgement.happening(call["name"], call["arguments"], result["body"], is_error=result["is_error"])


def _finished(call: Call) -> Ended | None:
    """How the model ends the run; None if it did not say so properly, and the tools' own refusal answers."""
    success = (call.arguments or {}).get("success")
    if not isinstance(success, bool):
        return None
    return Ended(_STATE.FINISHED, "done" if success else "gave_up", str((call.arguments or {}).get("summary", "")), success)


def _session_of(call: Call) -> str:
    given = call.arguments or {}
    return str(given.get("session_id") or given.get("sessionId") or "")


def _prompt_kind(call: Call, steps: list[AgentStep]) -> str:
    """What the session waited for when the run last saw it."""
    session = _session_of(call)
    for step in reversed(steps):
        for result in reversed(step.results):
            if session and str(result["body"].get("session_id")) == session:
                return str((result["body"].get("prompt") or {}).get("kind", ""))
    return ""


def _is_hidden(call: Call, steps: list[AgentStep]) -> bool:
    """It answers a question for a secret, so nobody is to read what it types."""
    return _prompt_kind(call, steps) == "secret" and bool((call.arguments or {}).get("input_text") or (call.arguments or {}).get("keys"))


def _vouched_sessions(steps: list[AgentStep], approved: set[tuple[int, int]]) -> set[str]:
    """Sessions whose start a person approved."""
    return {
        str(result["body"].get("session_id") or result["body"].get("sessionId") or "-")
        for step in steps
        for index, result in enumerate(step.results)
        if (step.number, index) in approved
    }
