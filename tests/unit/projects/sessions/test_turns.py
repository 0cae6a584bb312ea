"""Patterns of ``wait_for``, and the statements a look at a session costs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from projects.errors.calls import InvalidPattern
from projects.models import CommandSession
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.sessions.turns import Turn, compile_pattern
from tests.support.rows import make_controller, make_session


@pytest.mark.parametrize(
    "pattern", ["(?=x)", r"(a)\1", "(", "a" * 1001, "\ud800", "(((a{1,900}){1,900}){1,900})"]
)
def test_a_nonlinear_or_invalid_pattern_is_refused_and_not_echoed(pattern: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert pattern not in str(refused.value) or len(pattern) == 1


@pytest.mark.parametrize(
    ("pattern", "remedy"), [("a" * 1001, "shorter"), ("main(", r"\("), ("(?=x)", "no look-around")]
)
def test_the_hint_fits_what_is_wrong_with_a_pattern(pattern: str, remedy: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert remedy in refused.value.hint


def test_no_pattern_is_no_pattern() -> None:
    assert compile_pattern(None) is None
    assert compile_pattern("") is None


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _print(session: CommandSession, data: bytes, offset: int) -> None:
    output_log.append([NewChunk(session.id, "stdout", offset, offset, data)])
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=offset + len(data))


@pytest.mark.django_db
def test_a_pattern_matches_text_across_looks_and_reads_nothing_twice(
    session: CommandSession,
) -> None:
    turn = Turn(session.project_id, session.id, 0, 1.0, pattern=compile_pattern("re+ady"))
    _print(session, b"\x1b[32mre", 0)
    assert turn.look(is_last=False) is None
    _print(session, b"eeady\x1b[0m", 7)
    result = turn.look(is_last=False)
    assert result is not None
    assert result.output == "reeeady"


@pytest.mark.django_db
def test_an_idle_look_runs_one_statement_and_the_last_look_three(session: CommandSession) -> None:
    turn = Turn(session.project_id, session.id, 0, 1.0)
    with CaptureQueriesContext(connection) as idle:
        assert turn.look(is_last=False) is None
    _print(session, b"Name: ", 0)
    CommandSession.objects.filter(id=session.id).update(
        terminal_state="awaiting_input",
        terminal_offset=6,
        terminal_kind="line",
        terminal_evidence="kernel",
    )
    with CaptureQueriesContext(connection) as last:
        assert turn.look(is_last=False) is not None
    assert (len(idle), len(last)) == (1, 3)
    session.refresh_from_db()
    assert session.shown_offset == 6


@pytest.mark.django_db
def test_a_verdict_from_before_the_newest_output_does_not_count(session: CommandSession) -> None:
    CommandSession.objects.filter(id=session.id).update(
        terminal_state="awaiting_input", terminal_offset=0, terminal_kind="line"
    )
    _print(session, b"more", 0)
    assert Turn(session.project_id, session.id, 0, 1.0).look(is_last=False) is None
    result = Turn(session.project_id, session.id, 0, 1.0).look(is_last=True)
    assert result is not None
    assert (result.state, result.prompt) == ("running", None)
