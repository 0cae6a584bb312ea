"""A session's states: one table, ends are final, an illegal step changes nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller_client.protocol.errors import IllegalTransition
from controller_client.protocol.session_state import (
    ACTIVE_STATES,
    TRANSITIONS,
    SessionState,
    check_transition,
)
from tests.support.running.property_settings import STEADY

ENDS = {"EXITED", "TERMINATED", "TIMED_OUT", "LOST", "START_FAILED", "EXPIRED"}


def test_every_state_is_in_the_table_and_is_active_or_an_end() -> None:
    assert set(TRANSITIONS) == set(SessionState)
    assert {state.value for state in SessionState if state.is_final} == ENDS
    assert set(ACTIVE_STATES) == {state for state in SessionState if state.value not in ENDS}


@pytest.mark.parametrize("state", list(SessionState))
def test_only_the_steps_of_the_table_are_allowed(state: SessionState) -> None:
    for following in SessionState:
        if following in TRANSITIONS[state]:
            check_transition(state, following)
        else:
            with pytest.raises(IllegalTransition, match=f"{state} cannot become {following}$"):
                check_transition(state, following)


def test_every_state_is_reached_from_pending_and_reaches_an_end() -> None:
    reached = {SessionState.PENDING}
    while True:
        following = reached.union(*(TRANSITIONS[state] for state in reached))
        if following == reached:
            break
        reached = following
    assert reached == set(SessionState)
    assert all(any(each.is_final for each in TRANSITIONS[state]) for state in ACTIVE_STATES)


@pytest.mark.parametrize("end", ["EXITED", "TERMINATED", "TIMED_OUT", "LOST"])
def test_the_end_may_be_reported_when_started_was_lost(end: str) -> None:
    check_transition(SessionState.SENT, SessionState(end))


@given(st.lists(st.sampled_from(list(SessionState)), max_size=12))
@settings(STEADY)
def test_any_path_visits_no_state_twice(wanted: list[SessionState]) -> None:
    path = [SessionState.PENDING]
    for state in wanted:
        if state in TRANSITIONS[path[-1]]:
            path.append(state)
    assert len(set(path)) == len(path)


class SessionLife(RuleBasedStateMachine):
    """Reports about a session in any order, as a confused pair of connections might send them."""

    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState.PENDING
        self.end: SessionState | None = None

    @rule(wanted=st.sampled_from(list(SessionState)))
    def report(self, wanted: SessionState) -> None:
        try:
            check_transition(self.state, wanted)
        except IllegalTransition:
            return
        self.state = wanted
        if wanted.is_final:
            self.end = wanted

    @invariant()
    def an_end_is_final(self) -> None:
        assert self.end is None or self.state is self.end


TestSessionLife = SessionLife.TestCase
TestSessionLife.settings = settings(STEADY, max_examples=50)
