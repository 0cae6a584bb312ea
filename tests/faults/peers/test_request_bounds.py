"""Limits on the requests of peers without authentication, on each of the web servers."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import repeat
from pathlib import Path

import pytest
from django.templatetags.static import static

from tests.support.processes import resident_bytes, status_field
from tests.support.proxies.raw_http import Reply, chunk, connect, drip, exchange, head, receive
from tests.support.stack import RUNSERVER, SERVERS, Stack, running_stack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault

_MIB = 1024 * 1024
_BLOCK = b"a" * 65536
_PATHS = (
    "/admin/login/",
    "/mcp",
    "/controllers/enrol",
    static("admin/css/base.css"),
    "/nowhere",
    "/healthz",
    "/",
)
_FORM = "Content-Type: application/x-www-form-urlencoded"
_UPGRADE = (
    *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
_IMPATIENT = {"HOLDLINE_REQUEST_SECONDS": "2", "HOLDLINE_IDLE_SECONDS": "4"}
# Room for the bodies, and for the memory that the allocator and the requests' objects keep.
_MEMORY_BYTES = 160 * _MIB
_ATTEMPTS = 5


@pytest.fixture(scope="module", params=[*SERVERS, RUNSERVER])
def served(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack behind each of the servers, which waits for nobody longer than a moment."""
    usual, Stack.SERVER_KIND = Stack.SERVER_KIND, request.param
    try:
        with running_stack(server_environment=_IMPATIENT) as started:
            yield started
    finally:
        Stack.SERVER_KIND = usual


def _pid(stack: Stack) -> int:
    assert stack.server is not None
    return stack.server.pid


def _written_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


@pytest.mark.parametrize("path", _PATHS)
def test_a_body_that_is_too_long_is_refused_while_it_comes(served: Stack, path: str) -> None:
    base, written = resident_bytes(_pid(served)), _written_bytes(_pid(served))
    announced = exchange(
        served.port, [head(path, _FORM, f"Content-Length: {900 * _MIB}"), *repeat(_BLOCK, 4000)]
    )
    in_chunks = exchange(
        served.port, [head(path, _FORM, "Transfer-Encoding: chunked"), *repeat(chunk(_BLOCK), 4000)]
    )
    for reply in (announced, in_chunks):
        assert reply.is_closed
        assert reply.sent_bytes < 64 * _MIB
    assert announced.statuses == [413]
    # A path that reads no body may have answered before the body was too long.
    assert in_chunks.statuses[0] >= 400
    assert resident_bytes(_pid(served)) - base < 32 * _MIB
    assert _written_bytes(_pid(served)) - written < 8 * _MIB


def test_a_body_announced_as_too_long_gets_413_and_no_100_continue(served: Stack) -> None:
    reply = exchange(
        served.port, [head("/mcp", f"Content-Length: {_MIB + 1}", "Expect: 100-continue")]
    )
    assert (reply.statuses, reply.is_closed) == ([413], True)
    assert b"the body of the request is larger than 1048576 bytes" in reply.data


def test_the_limit_of_a_body_is_exact_and_holds_for_later_requests(served: Stack) -> None:
    longest = head("/nowhere", _FORM, f"Content-Length: {_MIB}") + b"a" * _MIB
    last = head("/healthz", "Connection: close", method="GET")
    assert exchange(served.port, [longest, last]).statuses[1:] == [200]
    too_long = head("/nowhere", f"Content-Length: {_MIB + 1}")
    assert exchange(served.port, [head("/healthz", method="GET") + too_long + b"x"]).statuses == [
        200,
        413,
    ]
    in_chunks = (
        head("/admin/login/", "Transfer-Encoding: chunked")
        + chunk(b"a" * _MIB)
        + chunk(b"a")
        + chunk(b"")
    )
    assert exchange(served.port, [in_chunks + last]).statuses == [413]
    # A length of so many digits is no number of bytes.
    assert exchange(served.port, [head("/mcp", f"Content-Length: {'9' * 5000}")]).statuses == [400]


def test_a_body_of_too_many_small_chunks_is_refused_while_it_comes(served: Stack) -> None:
    in_chunks = head("/admin/login/", _FORM, "Transfer-Encoding: chunked")
    some, many = chunk(b"a") * 1000, chunk(b"a" * 64) * 8000
    last = head("/healthz", "Connection: close", method="GET")
    for body in (some, many):
        assert exchange(served.port, [in_chunks, body, chunk(b""), last]).statuses == [403, 200]
    shredded = exchange(served.port, [in_chunks, *repeat(chunk(b"a") * 10_000, 100)])
    assert (shredded.statuses, shredded.is_closed) == ([400], True)
    assert b"too many small chunks" in shredded.data
    assert shredded.sent_bytes < 8 * _MIB


def test_held_back_bodies_are_refused_and_memory_stays_flat(served: Stack) -> None:
    base = resident_bytes(_pid(served))
    held_back = head("/admin/login/", _FORM, f"Content-Length: {_MIB}") + b"a" * (_MIB - 1)
    with ExitStack() as slow:
        peers = []
        for _ in range(600):
            peers.append(slow.enter_context(connect(served.port)))
            with suppress(OSError):
                peers[-1].sendall(held_back)
        # On a busy machine the time of the first ones is over before they have to make room.
        assert any(receive(peer, 10).statuses == [503] for peer in peers)
        # Other requests are served meanwhile.
        assert exchange(
            served.port, [head("/healthz", "Connection: close", method="GET")]
        ).statuses == [200]
        peak = int((status_field(_pid(served), "VmHWM") or "0 kB").split()[0]) * 1024
        assert peak - base < _MEMORY_BYTES


def test_held_back_bodies_of_one_token_leave_room_for_others(served: Stack) -> None:
    for _ in range(_ATTEMPTS):
        other, answers, seconds = _held_back_beside_another(served)
        # On a busy machine the time of the first ones may be over before the last ones come.
        if seconds < float(_IMPATIENT["HOLDLINE_REQUEST_SECONDS"]):
            break
    assert other.statuses == [404]
    # Eight of them had room.
    assert sorted(answers) == [[408]] * 8 + [[503]] * 3


def _held_back_beside_another(served: Stack) -> tuple[Reply, list[list[int]], float]:
    """Another peer's answer, those to eleven bodies of one token, and the seconds up to the first.

    The bodies lack their last byte.
    """
    shown = f"Authorization: Bearer {served.provisioned.token}"
    part, began = b"a" * (_MIB - 1), time.monotonic()
    with ExitStack() as slow:
        peers = [slow.enter_context(connect(served.port)) for _ in range(11)]
        for peer in peers:
            with suppress(OSError):
                peer.sendall(head("/mcp", shown, f"Content-Length: {_MIB}") + part)
        whole = head("/nowhere", _FORM, f"Content-Length: {_MIB}", "Connection: close")
        other = exchange(served.port, [whole + part + b"a"])
        seconds = time.monotonic() - began
        return other, [receive(peer, 10).statuses for peer in peers], seconds


def test_a_burst_of_connections_is_queued_and_answered(served: Stack) -> None:
    """The server's backlog has to hold them all.

    A client whose connection found no room in the backlog would try again seconds later, and this
    test would time out.
    """
    with ExitStack() as burst:
        served.pause_server()
        try:
            peers = [
                burst.enter_context(
                    socket.create_connection(("127.0.0.1", served.port), timeout=10)
                )
                for _ in range(600)
            ]
            for peer in peers:
                peer.sendall(head("/healthz", "Connection: close", method="GET"))
        finally:
            served.resume_server()
        assert {tuple(receive(peer, 30).statuses) for peer in peers} == {(200,)}


def test_an_incomplete_request_or_idle_connection_is_closed(served: Stack) -> None:
    longer = {"first": b"", "drop": b""}
    slow = {
        "half a header": {"first": b"POST /mcp HTTP/1.1\r\nHost: loc", "drop": b""},
        "a header that grows": {"first": b"POST /mcp HTTP/1.1\r\nX: ", "drop": b"a"},
        "half a handshake": {
            "first": head("/ws/controller/", *_UPGRADE, method="GET")[:-4],
            "drop": b"",
        },
        "half a body": {"first": head("/mcp", "Content-Length: 1000") + b"{", "drop": b""},
        "a body that grows": {
            "first": head("/admin/login/", _FORM, "Content-Length: 1000"),
            "drop": b"a",
        },
        "chunks": {
            "first": head("/controllers/enrol", "Transfer-Encoding: chunked"),
            "drop": chunk(b"a"),
        },
        "behind an answer": {
            "first": head("/healthz", method="GET") + head("/mcp", "Content-Length: 9"),
            "drop": b"",
        },
        "an idle connection": {"first": head("/healthz", method="GET"), "drop": b""},
        "silence": longer,
    }
    with ThreadPoolExecutor(len(slow)) as pool:
        waits = {
            name: pool.submit(drip, served.port, **parts, seconds=60)
            for name, parts in slow.items()
        }
        replies = {name: wait.result() for name, wait in waits.items()}
    assert [name for name, reply in replies.items() if not reply.is_closed] == []
    assert replies["an idle connection"].statuses == [200]
    for name in ("half a header", "a header that grows", "half a handshake"):
        assert replies[name].statuses == [408], name


def test_a_later_request_of_a_connection_is_told_that_it_is_slow(served: Stack) -> None:
    """It has no longer than a first one. An idle connection has, and is closed without a word."""
    shown = f"Authorization: Bearer {served.provisioned.token}"
    whole, halves = (
        head("/healthz", method="GET"),
        {
            "a byte": b"P",
            "half a header": b"POST /mcp HTTP/1.1\r\nHost: loc",
            "half a body": head("/mcp", shown, "Content-Length: 9") + b"{",
        },
    )

    def statuses(half: bytes, earlier: int, *, is_behind_answers: bool) -> list[int]:
        with connect(served.port) as peer:
            data = b""
            if is_behind_answers:
                for _ in range(earlier):
                    peer.sendall(whole)
                    data += peer.recv(_MIB)
                peer.sendall(half)
            else:
                peer.sendall(whole * earlier + half)
            return Reply(data + receive(peer, 60).data, is_closed=True).statuses

    with ThreadPoolExecutor(12) as pool:
        waits = {
            (name, earlier, is_behind): pool.submit(
                statuses, half, earlier, is_behind_answers=is_behind
            )
            for name, half in halves.items()
            for earlier in (1, 2)
            for is_behind in (False, True)
        }
    assert {case: wait.result() for case, wait in waits.items()} == {
        case: [200] * case[1] + [408] for case in waits
    }


def test_a_refused_handshake_is_the_last_request_of_its_connection(served: Stack) -> None:
    """Nothing begins behind it that would need a limit."""
    refused = head("/ws/controller/", *_UPGRADE, "Host: evil.example", method="GET")
    reply = exchange(served.port, [refused + b"POST /mcp HTTP/1.1\r\nHost: loc"])
    assert (reply.statuses, reply.is_closed) == ([400], True)
    assert b"connection: close" in reply.data.lower()


def test_a_connection_is_idle_again_after_the_rest_of_an_answered_body(served: Stack) -> None:
    """It is closed without a word, since no request of it is under way."""
    body = head("/healthz", _FORM, "Content-Length: 9")
    with connect(served.port) as peer:
        peer.sendall(body + b"a" * 8)
        first = peer.recv(_MIB) if Stack.SERVER_KIND == "uvicorn" else b""
        peer.sendall(b"a")
        reply = receive(peer, 60)
    assert (Reply(first + reply.data, reply.is_closed).statuses, reply.is_closed) == ([405], True)


async def test_a_caller_that_waits_for_its_answer_is_not_cut_off(served: Stack) -> None:
    """A waiting call, its stream and the controller's socket outlive every one of these limits."""
    async with served.caller() as caller, caller.terminal("sh -c 'sleep 7; echo over'") as session:
        await session.until("exited", 30)
        assert "over" in session.seen
    assert served.database.controller_epoch(served.provisioned.controller) == 1


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Content-Type"])
@pytest.mark.parametrize(
    "path",
    ["/mcp", "/controllers/enrol", "/controllers/rotate", "/admin/login/", "/healthz", "/nowhere"],
)
def test_a_repeated_header_that_matters_is_refused(served: Stack, path: str, name: str) -> None:
    lines = [] if name == "Host" else [f"{name}: localhost"]
    reply = exchange(
        served.port,
        [
            head(path, *lines, f"{name}: evil.example", "Content-Length: 2", "Connection: close")
            + b"{}"
        ],
    )
    assert reply.statuses == [400]


@pytest.mark.parametrize("name", ["Host", "Authorization"])
def test_a_repeated_header_of_a_handshake_is_refused(served: Stack, name: str) -> None:
    credential = f"Authorization: Bearer {served.provisioned.spare_credential}"
    again = "Host: evil.example" if name == "Host" else "Authorization: Bearer x"
    assert exchange(
        served.port,
        [head("/ws/controller/", *_UPGRADE, credential, again, method="GET")],
        seconds=5,
    ).statuses == [400]


@pytest.mark.parametrize(
    "path",
    ["/%6dcp", "/mcp%2f", "/mcp%00", "/%6detrics", "/%61dmin/login/", "/controllers%2fenrol"],
)
def test_an_encoded_path_is_not_found(served: Stack, path: str) -> None:
    reply = exchange(served.port, [head(path, "Content-Length: 0", "Connection: close")])
    assert reply.statuses == [404]


@pytest.mark.parametrize("path", ["/mcp//", "/mcp////", "//mcp", "/./mcp"])
def test_a_path_in_another_spelling_is_not_found(served: Stack, path: str) -> None:
    reply = exchange(served.port, [head(path, "Content-Length: 0", "Connection: close")])
    assert reply.statuses == [404]


def test_a_handshake_with_a_body_or_an_encoded_path_is_refused(served: Stack) -> None:
    with_body = (
        head("/ws/controller/", *_UPGRADE, "Content-Length: 4", method="GET") + b"\x81\x02{}"
    )
    assert 101 not in exchange(served.port, [with_body], seconds=5).statuses
    assert (
        exchange(
            served.port, [head("/ws/controller%2f", *_UPGRADE, method="GET")], seconds=5
        ).statuses[0]
        >= 400
    )


@pytest.mark.parametrize(
    ("path", "lines", "body"),
    [
        ("/ws/controller/", ("Content-Length: 4",), b"\x81\x02{}"),
        ("/nowhere", (f"Content-Length: {900 * _MIB}",), _BLOCK),
        ("/mcp", ("Transfer-Encoding: chunked",), chunk(b"{}")),
        ("/ws/controller/", ("X-More: a",) * 200, b""),
        ("/ws/controller/", (f"X-More: {'a' * 9000}",), b""),
        (f"/{'a' * 9000}", (), b""),
    ],
    ids=["a body", "a long body", "chunks", "many headers", "a long header", "a long path"],
)
def test_an_unusual_handshake_is_answered_and_ended(
    served: Stack, path: str, lines: tuple[str, ...], body: bytes
) -> None:
    reply = exchange(served.port, [head(path, *_UPGRADE, *lines, method="GET") + body])
    assert reply.is_closed
    assert reply.statuses
    assert reply.statuses[0] >= 400


def test_frames_before_the_answer_to_the_handshake_are_not_read(served: Stack) -> None:
    base = resident_bytes(_pid(served))
    credential = "Authorization: Bearer ctl_0000000000000000_" + "A" * 43
    frames = [
        head("/ws/controller/", *_UPGRADE, credential, method="GET"),
        *repeat(b"\r\n\r\n" + _BLOCK, 2000),
    ]
    reply = exchange(served.port, frames)
    assert reply.is_closed
    assert 101 not in reply.statuses
    wait_until(lambda: resident_bytes(_pid(served)) - base < 32 * _MIB, 90, "memory to be flat")
