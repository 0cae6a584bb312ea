"""The calls whose input nobody may read, because it is or may become the answer to a secret."""

from collections.abc import Sequence
from uuid import UUID

from agent.llm.conversation import Call
from agent.models import AgentStep
from agent.runs import history
from projects.sessions.approvals.targets import asks_for_secret


def is_unseen(project_id: UUID, call: Call, steps: Sequence[AgentStep]) -> bool:
    """Returns True if the call, made now, types where a secret is asked for.

    The row of the session knows of prompts that came since the newest result.
    """
    return history.is_hidden(call, steps) or (
        history.types(call) and asks_for_secret(project_id, call.arguments or {})
    )


def withheld(project_id: UUID, calls: Sequence[Call], steps: Sequence[AgentStep]) -> set[int]:
    """The indexes of calls of a new answer whose input is not stored in clear.

    An earlier call of the same answer may raise the prompt that a later one answers, so the input
    of later calls is withheld until it is their turn.
    """
    return {
        index
        for index, call in enumerate(calls)
        if history.types(call) and (index > 0 or is_unseen(project_id, call, steps))
    }
