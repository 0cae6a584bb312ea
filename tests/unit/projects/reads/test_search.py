"""Searches over stored output: lines, offsets, neighbours, gaps, bounds."""

from typing import Any
from uuid import UUID

import pytest

from projects.accounts.authentication import SCOPES, Caller
from projects.errors.calls import InvalidPattern
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.reads import search, searched_streams
from projects.reads.status import session_read_output
from projects.secrets.masks import MASK, secret_remember
from projects.storage.access import in_database
from projects.tools.search_session_output import SEARCH_SESSION_OUTPUT
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


def stored(
    *chunks: bytes, stream: Any = "stdout", session: CommandSession | None = None
) -> CommandSession:
    """A session with this output."""
    session = session or make_session(make_controller())
    offset = 0
    for data in chunks:
        output_log.append([NewChunk(session.id, stream, offset, offset, data)])
        offset += len(data)
    CommandSession.objects.filter(id=session.id).update(**{f"{stream}_next_offset": offset})
    return session


async def found(session: CommandSession, pattern: str, **arguments: Any) -> search.SearchResult:
    project_id: UUID = session.project_id
    return await search.output_search(project_id, pattern, session_id=session.id, **arguments)


async def test_a_line_is_found_across_chunks_with_its_neighbours() -> None:
    session = await in_database(stored, b"one\ntw", b"o\nthr", b"ee\nfour")
    result = await found(session, "two|four", context_lines=1)
    assert [(hit.offset, hit.line, hit.before, hit.after) for hit in result.hits] == [
        (4, "two", ["one"], ["three"]),
        (14, "four", ["three"], []),
    ]
    assert (result.searched_bytes, result.stopped_by, result.next) == (18, None, None)


async def test_lines_are_searched_as_they_are_seen() -> None:
    session = await in_database(stored, b"\x1b[1mbo\x1b[0mld\r\n10%\r100%\n\xff\n")
    assert [hit.line for hit in (await found(session, "^(bold|100%)$")).hits] == ["bold", "100%"]
    assert not (await found(session, "10%.")).hits


async def test_no_line_of_a_search_has_a_part_of_a_secret() -> None:
    session = await in_database(stored, b"say correct-\nhorse, and more\n" + b"a line\n" * 100)
    await in_database(secret_remember, session.id, b"correct-horse")
    (hit,) = (await found(session, "say", context_lines=2)).hits
    assert (hit.line, hit.after) == (f"say {MASK}", [", and more", "a line"])
    assert not (await found(session, "horse|correct")).hits
    lines = (await found(session, "a line", max_results=100)).hits
    assert [hit.offset for hit in lines] == [29 + 7 * number for number in range(100)]


async def test_neighbours_of_lines_close_together_overlap() -> None:
    session = await in_database(stored, b"a\nx1\nx2\nb\nc\n")
    result = await found(session, "x", context_lines=2)
    assert [(hit.before, hit.after) for hit in result.hits] == [
        (["a"], ["x2", "b"]),
        (["a", "x1"], ["b", "c"]),
    ]


async def test_a_search_that_has_enough_says_where_to_go_on() -> None:
    session = await in_database(stored, b"".join(b"x%d\n" % number for number in range(10)))
    lines: list[str] = []
    position: dict[str, Any] = {}
    while True:
        result = await found(session, "x", max_results=3, **position)
        lines += [hit.line for hit in result.hits]
        if result.next is None:
            break
        position = {"offset": result.next.offset, "stream": result.next.stream}
    assert lines == [f"x{number}" for number in range(10)]


async def test_a_search_that_takes_too_long_says_where_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "SLICE_SECONDS", -1.0)
    monkeypatch.setattr(search, "MAX_SECONDS", 0.0)
    session = await in_database(stored, b"y\n" * 1000)
    result = await found(session, "x")
    assert (result.hits, result.stopped_by) == ([], "time")


async def test_a_search_of_long_lines_looks_at_its_clock_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "SLICE_SECONDS", -1.0)
    monkeypatch.setattr(search, "MAX_SECONDS", 0.0)
    session = await in_database(stored, (b"y" * 20_000 + b"z\n") * 30)
    result = await found(session, "x|z")
    assert (len(result.hits), result.stopped_by, result.searched_bytes) == (1, "time", 20_002)


async def test_a_search_of_the_project_goes_on_over_all_that_is_older(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searched_streams, "MAX_OWNERS", 3)
    first = await in_database(stored, b"x0\nx1\n")
    sessions = [first]
    for number in range(4):
        again = await in_database(make_session, first.controller)
        sessions.append(
            await in_database(
                stored, b"x%d\nno\nx%d\n" % (number * 2 + 2, number * 2 + 3), session=again
            )
        )
    await in_database(stored, b"x90\nx91\n", stream="stderr", session=sessions[2])

    async def all_of(**begin: Any) -> list[str]:
        lines: list[str] = []
        position = begin
        for _ in range(30):
            result = await search.output_search(first.project_id, "x", **position)
            lines += [hit.line for hit in result.hits]
            if result.next is None:
                return lines
            position = {**begin, **vars(result.next)}
        raise AssertionError("it does not come to an end")

    newest_first = ["x8", "x9", "x6", "x7", "x4", "x5", "x90", "x91", "x2", "x3", "x0", "x1"]
    for limit in (1, 3, 20):
        assert await all_of(max_results=limit) == newest_first
    assert await all_of(max_results=1, stream="stderr") == ["x90", "x91"]
    assert await all_of(max_results=1, stream="stdout") == [
        line for line in newest_first if len(line) < 3
    ]
    monkeypatch.setattr(search, "MAX_SECONDS", 0.001)
    assert sorted(await all_of()) == sorted(newest_first)


async def test_skipping_blocks_changes_neither_hits_nor_their_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [
        b"x%d\r\n" % number if number in {5, 30_000, 30_002} else b"line %d\r\n" % number
        for number in range(40_000)
    ]
    session = await in_database(
        stored, *(b"".join(lines[start : start + 7_000]) for start in range(0, 40_000, 7_000))
    )
    quick = await found(session, "^x", context_lines=3)
    monkeypatch.setattr(search, "block_pattern", lambda _: None)
    assert await found(session, "^x", context_lines=3) == quick
    assert quick.hits[1].before == ["line 29997", "line 29998", "line 29999"]
    assert quick.searched_bytes == sum(map(len, lines))


async def test_standard_error_and_what_is_behind_a_gap_are_searched() -> None:
    session = await in_database(stored, b"x before", stream="stderr")

    def with_gap() -> None:
        output_log.add_gap(session.id, "stderr", 8, 100, "lost")
        output_log.append([NewChunk(session.id, "stderr", 100, 9, b"x behind\n")])
        CommandSession.objects.filter(id=session.id).update(stderr_next_offset=109)

    await in_database(with_gap)
    hits = (await found(session, "x")).hits
    assert [(hit.stream, hit.offset, hit.line) for hit in hits] == [
        ("stderr", 0, "x before"),
        ("stderr", 100, "x behind"),
    ]


async def test_next_is_all_that_another_call_of_the_tool_needs() -> None:
    session = await in_database(stored, b"x 1\nno\nx 2\n", b"x 3\n")
    await in_database(lambda: stored(b"x 4\nx 5\n", stream="stderr", session=session))
    await in_database(lambda: stored(b"x 6\n", session=make_session(session.controller)))
    caller = Caller(session.project_id, "token:x", frozenset(SCOPES))
    name = str(session.id)
    for begun in ({}, {"stream": "stderr"}, {"session_id": name, "stream": "stdout"}):
        whole = (await SEARCH_SESSION_OUTPUT.call({**begun, "pattern": "x"}, caller)).body
        assert (whole["stopped_by"], whole["next"]) == (None, None)
        hits: list[dict[str, Any]] = []
        asked: dict[str, Any] | None = begun
        for _ in whole["hits"]:
            asking = {**(asked or {}), "pattern": "x", "max_results": 1}
            part = (await SEARCH_SESSION_OUTPUT.call(asking, caller)).body
            assert (part["next"] is None) == (part["stopped_by"] is None)
            hits += part["hits"]
            asked = part["next"]
        assert asked is None
        places = [(hit["session_id"], hit["stream"], hit["offset"]) for hit in hits]
        assert places == [
            (hit["session_id"], hit["stream"], hit["offset"]) for hit in whole["hits"]
        ]


async def test_a_search_of_one_session_goes_on_in_the_stream_it_stopped_in() -> None:
    session = await in_database(stored, b"x 1\nx 2\n")
    await in_database(lambda: stored(b"x 3\n", stream="stderr", session=session))
    assert [hit.line for hit in (await found(session, "x")).hits] == ["x 1", "x 2", "x 3"]
    part = await found(session, "x", max_results=1)
    assert part.next is not None
    rest = await found(session, "x", stream=part.next.stream, offset=part.next.offset)
    assert ([hit.line for hit in rest.hits], rest.next) == (["x 2"], None)
    text = search.SearchResult.model_fields["next"].description or ""
    assert "in one session in this stream alone" in text


async def test_the_offset_of_a_hit_is_where_a_read_of_its_stream_shows_the_line() -> None:
    session = await in_database(stored, "\u00e9\u4e2d\r\nx out\r\nrest\r\n".encode())
    await in_database(
        lambda: stored(b"\x1b[1mfirst\x1b[0m\nx err\n", stream="stderr", session=session)
    )
    hits = (await found(session, "^x ")).hits
    assert {hit.stream for hit in hits} == {"stdout", "stderr"}
    for hit in hits:
        assert hit.stream != "log"
        read = await session_read_output(
            session.project_id, hit.session_id, offset=hit.offset, stream=hit.stream
        )
        assert read.output.startswith(f"{hit.line}\n")
        assert read.offset == hit.offset


@pytest.mark.parametrize("pattern", ["", "(", "(?=x)", "x" * 10_000])
async def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    session = await in_database(stored, b"x")
    with pytest.raises(InvalidPattern, match="pattern is not a valid"):
        await found(session, pattern)


async def test_sessions_of_others_are_neither_searched_nor_known() -> None:
    session = await in_database(stored, b"x\n")
    other = await in_database(make_controller, "other")
    assert not (await search.output_search(other.project_id, "x")).hits
    with pytest.raises(SessionNotFound):
        await search.output_search(other.project_id, "x", session_id=session.id)
