"""The holder's end of its socket: what is sent at once, and what waits for company."""

import socket
from collections.abc import Iterator

import pytest

from controller_client.holder.link import HolderLink
from controller_client.protocol.codec import decode_from_holder
from controller_client.protocol.messages import CommandAck, FromHolder, InputAck
from controller_client.session_files.framing import Unpacker

ACK = InputAck(session_id="s", command_seq=1, input_seq=1, accepted_bytes=1)
OTHER = CommandAck(session_id="s", command_seq=2)


@pytest.fixture
def ends() -> Iterator[tuple[HolderLink, socket.socket]]:
    """A link and the daemon's end of it."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        link = HolderLink(ours)
        yield link, theirs
        link.close()


def _received(theirs: socket.socket) -> list[FromHolder]:
    try:
        return [decode_from_holder.decode(frame) for frame in Unpacker().feed(theirs.recv(65536))]
    except BlockingIOError:
        return []


def test_what_may_wait_leaves_when_its_time_has_come(
    ends: tuple[HolderLink, socket.socket],
) -> None:
    link, theirs = ends
    link.send_in_company(ACK, until=10.0)
    link.flush(now=9.0)
    assert _received(theirs) == []
    assert link.held_until == 10.0
    assert not link.wants_write
    link.flush(now=10.0)
    assert _received(theirs) == [ACK]
    assert link.held_until is None


def test_what_may_wait_leaves_before_the_next_frame_and_with_it(
    ends: tuple[HolderLink, socket.socket],
) -> None:
    link, theirs = ends
    link.send_in_company(ACK, until=10.0)
    link.send(OTHER)
    link.flush(now=9.0)
    assert _received(theirs) == [ACK, OTHER]


def test_what_may_wait_does_not_hold_back_what_is_there_already(
    ends: tuple[HolderLink, socket.socket],
) -> None:
    link, theirs = ends
    link.send(OTHER)
    link.send_in_company(ACK, until=10.0)
    link.flush(now=9.0)
    assert _received(theirs) == [OTHER, ACK]


def test_a_second_one_that_may_wait_goes_with_the_first(
    ends: tuple[HolderLink, socket.socket],
) -> None:
    link, theirs = ends
    link.send_in_company(ACK, until=10.0)
    link.send_in_company(ACK, until=12.0)
    link.flush(now=9.5)
    assert _received(theirs) == [ACK, ACK]
