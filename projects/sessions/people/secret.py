"""A caller asks a person for a secret, and waits; a person types it, and nobody else sees it.

The secret goes the way of a stored one: sealed in the outbox, refused by the host unless the
terminal hides it, and masked from then on in what the program prints.
"""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from projects.accounts.authentication import Caller
from projects.conf import conf
from projects.errors.calls import InvalidArgument
from projects.errors.inputs import PersonPending
from projects.secrets.store import MAX_VALUE_BYTES
from projects.sessions.answers.results import InteractiveOutputResult
from projects.sessions.idempotency import request_for
from projects.sessions.snapshot import session_snapshot
from projects.sessions.transactions.acting import require_cleared
from projects.sessions.transactions.person import (
    PersonAsked,
    asks_for_secret,
    person_ask,
    person_type,
)
from projects.sessions.transactions.returning import once_back
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS, Turn
from projects.sessions.waiting import clamped, rung, watch
from projects.storage.access import in_database
from projects.wakeups.doorbells import session_doorbell

MAX_WANTED_CHARS: Final = 200
SETTLE_SECONDS: Final = 5.0
"""The wait for the host's answer to what a person typed."""


async def session_ask_person(
    project_id: UUID,
    session_id: UUID,
    wanted: str,
    *,
    caller: Caller | None = None,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    request_id: UUID | None = None,
) -> InteractiveOutputResult:
    """Ask a person for the secret that the program asks for, and return the turn that follows.

    If the program asks for no secret, the call only waits, so a repeat goes on where the first call
    stopped. A repeat with its ``request_id`` asks at no later prompt. Raises PersonPending if
    nobody has typed in time, SessionNotFound, ChangedSinceApproval and InvalidArgument.
    """
    require_cleared(caller)
    if not wanted.isprintable() or not 0 < len(wanted.strip()) <= MAX_WANTED_CHARS:
        raise InvalidArgument([f"ask_person: one line of 1 to {MAX_WANTED_CHARS} characters"])
    said = wanted.strip()
    body = {"session_id": session_id, "ask_person": said}
    request = request_for(project_id, request_id, "session.ask_person", body)
    asked = await in_database(person_ask, project_id, session_id, caller, said, request)
    turn = Turn(
        project_id,
        session_id,
        from_offset=asked.from_offset,
        wait_seconds=clamped(wait_seconds),
        is_poll=True,
        max_output_bytes=max_output_bytes,
    )
    # A caller without an approval finds the question by its prompt.
    named = None if caller is None or caller.permit is None else request_id
    look = turn.look if asked.event_id is None else _PersonTurn(turn, asked, named).look
    async with session_doorbell(session_id) as bell:
        return await watch(bell, look, turn.wait_seconds, look_first=True)


@dataclass(frozen=True, slots=True)
class _PersonTurn:
    """The wait of a call until a person has answered the prompt, and for the turn after that."""

    turn: Turn
    asked: PersonAsked
    request_id: UUID | None

    def look(self, is_last: bool) -> InteractiveOutputResult | None:
        """The result of the turn. Raises PersonPending at the last look of a prompt that stays."""
        now = session_snapshot(self.turn.project_id, self.turn.session_id)
        if now.input_seq > self.asked.input_seq:
            answered = replace(self.turn, input_seq=self.asked.input_seq + 1)
            return answered.look(is_last)
        if not asks_for_secret(now):
            return self.turn.look(is_last)
        if is_last:
            link = f"{conf.public_url}/attention/{self.asked.event_id}/"
            raise PersonPending(str(self.asked.event_id), link, self.request_id)
        return None


async def session_person_type(
    project_id: UUID, session_id: UUID, value: str, *, caller: Caller, input_seq: int
) -> InteractiveOutputResult:
    """Type the secret of a person, with Enter, at the prompt that came after ``input_seq`` inputs.

    Returns the turn that follows, which no caller is shown by this. Raises PromptGone,
    InvalidArgument, InputRefused and the other errors of ``send_input``.
    """
    data = value.encode(errors="surrogatepass")
    if not value or len(data) > MAX_VALUE_BYTES or not value.isprintable():
        raise InvalidArgument([f"one line of 1 to {MAX_VALUE_BYTES} bytes"])
    acted = await once_back(
        in_database, person_type, project_id, session_id, caller, data, input_seq
    )
    turn = Turn(
        project_id,
        session_id,
        from_offset=acted.from_offset,
        wait_seconds=SETTLE_SECONDS,
        input_seq=acted.input_seq,
        command_seq=acted.command_seq,
        until="settled",
        is_showing=False,
    )
    async with rung(acted) as bell:
        return await watch(bell, turn.look, SETTLE_SECONDS, look_first=False)
