"""States of a session and the only transitions between them. A terminal state is final.

``PENDING``: committed on the server. ``SENT``: handed to a connection. ``RUNNING``: the program
exists. All others are final.
"""

from enum import StrEnum

from controller_client.protocol.errors import IllegalTransition


class SessionState(StrEnum):
    """State of a command session, as stored on the server."""

    PENDING = "PENDING"
    SENT = "SENT"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    TERMINATED = "TERMINATED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"
    START_FAILED = "START_FAILED"
    EXPIRED = "EXPIRED"

    @property
    def is_final(self) -> bool:
        """True for an end: no other state follows this one."""
        return not TRANSITIONS[self]


_S = SessionState
_ENDS_OF_A_PROGRAM = frozenset({_S.EXITED, _S.TERMINATED, _S.TIMED_OUT, _S.LOST})

TRANSITIONS: dict[SessionState, frozenset[SessionState]] = {
    _S.PENDING: frozenset({_S.SENT, _S.EXPIRED, _S.TERMINATED}),
    # A host may report the end of a program whose STARTED was lost with its connection.
    _S.SENT: frozenset({_S.RUNNING, _S.START_FAILED, _S.EXPIRED}) | _ENDS_OF_A_PROGRAM,
    _S.RUNNING: _ENDS_OF_A_PROGRAM,
    _S.EXITED: frozenset(),
    _S.TERMINATED: frozenset(),
    _S.TIMED_OUT: frozenset(),
    _S.LOST: frozenset(),
    _S.START_FAILED: frozenset(),
    _S.EXPIRED: frozenset(),
}

ACTIVE_STATES: frozenset[SessionState] = frozenset(
    state for state in SessionState if TRANSITIONS[state]
)


def check_transition(from_state: SessionState, to_state: SessionState) -> None:
    """Raise IllegalTransition unless the table allows the step."""
    if to_state not in TRANSITIONS[from_state]:
        raise IllegalTransition(from_state, to_state)
