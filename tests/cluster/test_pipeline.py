"""Statements that travel together: their order, their errors, and what stays prepared."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest

from projects.storage.postgresql.pipeline import MAX_PREPARED, Pipeline
from tests.support.databases.cluster import Backends

LARGE_BYTES = 1024 * 1024


@pytest.fixture
def raw(backends: Backends) -> Iterator[psycopg.Connection[Any]]:
    """A connection of its own, in the state in which Django keeps connections."""
    url = backends.postgres.url("postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def pipeline(raw: psycopg.Connection[Any]) -> Pipeline:
    """The pipeline of ``raw``, with psycopg's own errors, and a table of one temporary column."""
    raw.execute("CREATE TEMP TABLE kept (n integer PRIMARY KEY)")
    return Pipeline(raw, is_preparing=True, errors=nullcontext())


def _kept(pipeline: Pipeline) -> list[int]:
    return [n for (n,) in pipeline.add("SELECT n FROM kept ORDER BY n").fetchall()]


def _prepared(pipeline: Pipeline) -> int:
    found = pipeline.add("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert found is not None
    return int(found[0])


def test_a_transaction_whose_answers_nobody_wants_makes_one_trip(
    raw: psycopg.Connection[Any], pipeline: Pipeline, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    with trace.open("wb") as out:
        raw.pgconn.trace(out.fileno())
        pipeline.add("BEGIN")
        for number in range(5):
            pipeline.add("INSERT INTO kept VALUES (%s)", [number])
        pipeline.add("COMMIT")
        assert not out.tell()
        pipeline.send()
        raw.pgconn.untrace()
    assert trace.read_text().count("ReadyForQuery") == 1
    assert _kept(pipeline) == [0, 1, 2, 3, 4]


def test_nothing_behind_a_statement_that_failed_is_executed(pipeline: Pipeline) -> None:
    pipeline.add("BEGIN")
    pipeline.add("INSERT INTO kept VALUES (%s)", [1])
    pipeline.add("INSERT INTO kept VALUES (%s)", [1])
    last = pipeline.add("INSERT INTO kept VALUES (%s)", [2])
    pipeline.add("COMMIT")
    with pytest.raises(psycopg.errors.UniqueViolation):
        pipeline.send()
    with pytest.raises(Exception, match="given up"):
        last.wait()
    pipeline.add("ROLLBACK")
    pipeline.add("INSERT INTO kept VALUES (%s)", [3])
    assert _kept(pipeline) == [3]


def test_large_statements_and_large_answers_pass_each_other(pipeline: Pipeline) -> None:
    texts = [str(number) * LARGE_BYTES for number in range(8)]
    answers = [pipeline.add("SELECT %s::text, '100%%'", [text]) for text in texts]
    assert [answer.fetchone() for answer in answers] == [(text, "100%") for text in texts]
    assert answers[0].fetchone() is None


def test_a_connection_that_ends_is_told_and_closed(
    backends: Backends, raw: psycopg.Connection[Any], pipeline: Pipeline
) -> None:
    assert _kept(pipeline) == []
    backends.postgres.execute(f"SELECT pg_terminate_backend({raw.info.backend_pid}, 5000)")
    pipeline.add("INSERT INTO kept VALUES (%s)", [1])
    with pytest.raises(psycopg.OperationalError):
        pipeline.send()
    assert raw.closed


def test_a_bounded_number_of_statements_stays_prepared(pipeline: Pipeline) -> None:
    for number in range(MAX_PREPARED + 20):
        pipeline.add(f"SELECT %s + {number}", [1])
    assert pipeline.add("SELECT %s + 0", [1]).fetchall() == [(1,)]
    assert _prepared(pipeline) <= MAX_PREPARED + 1


def test_statements_that_were_given_up_or_failed_stay_prepared_no_longer(
    pipeline: Pipeline,
) -> None:
    for number in range(MAX_PREPARED + 20):
        pipeline.add("BEGIN")
        pipeline.add(f"SELECT %s + {number}", [1]).fetchall()
        pipeline.forget()
        pipeline.add("ROLLBACK")
        pipeline.send()
    assert _prepared(pipeline) <= MAX_PREPARED + 1
    for number in range(MAX_PREPARED + 20):
        pipeline.add("BEGIN")
        pipeline.add(f"INSERT INTO kept VALUES (%s), ({number})", [number])
        with pytest.raises(psycopg.errors.UniqueViolation):
            pipeline.send()
        pipeline.add("ROLLBACK")
        pipeline.send()
    assert _prepared(pipeline) <= MAX_PREPARED + 1


def test_statements_that_the_server_has_forgotten_are_prepared_anew(
    raw: psycopg.Connection[Any], pipeline: Pipeline
) -> None:
    statement = "SELECT %s + 1"
    assert pipeline.add(statement, [1]).fetchall() == [(2,)]
    raw.execute("DEALLOCATE ALL")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        pipeline.add(statement, [1]).fetchall()
    assert pipeline.add(statement, [1]).fetchall() == [(2,)]


def test_a_statement_whose_plan_fits_no_more_is_prepared_anew(
    raw: psycopg.Connection[Any], pipeline: Pipeline
) -> None:
    statement = "SELECT * FROM kept WHERE n > %s"
    assert pipeline.add(statement, [0]).fetchall() == []
    raw.execute("ALTER TABLE kept ADD COLUMN more integer")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        pipeline.add(statement, [0]).fetchall()
    assert pipeline.add(statement, [0]).fetchall() == []


def test_nothing_is_prepared_behind_a_pooler_that_keeps_nothing(
    raw: psycopg.Connection[Any],
) -> None:
    pipeline = Pipeline(raw, is_preparing=False, errors=nullcontext())
    assert pipeline.add("SELECT %s + 1", [1]).fetchone() == (2,)
    assert pipeline.add("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
