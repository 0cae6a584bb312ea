"""Whose the things are that an event loop sleeps on, with this process as the subject."""

import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from controller_client.terminal_state.descriptors import has_foreign_socket, speak_for_others

ME = os.getpid()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as stack:
        yield stack


def _pair(closing: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return closing.enter_context(ours), closing.enter_context(theirs)


def test_a_pair_of_sockets_of_ones_own_is_nobody_elses(closing: ExitStack) -> None:
    ours, theirs = _pair(closing)
    assert not speak_for_others(ME, [ours.fileno(), theirs.fileno()])
    theirs.close()
    assert speak_for_others(ME, [ours.fileno()])


def test_a_socket_whose_other_end_another_process_has_speaks_for_it(closing: ExitStack) -> None:
    ours, theirs = _pair(closing)
    pid = os.fork()
    if pid == 0:
        ours.close()
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    assert speak_for_others(ME, [ours.fileno()])
    assert has_foreign_socket(ME)
    ours.send(b"x")
    os.waitpid(pid, 0)


def test_sockets_of_a_network_or_without_an_other_end_speak_for_others(closing: ExitStack) -> None:
    for family in (socket.AF_INET, socket.AF_UNIX):
        one = closing.enter_context(socket.socket(family, socket.SOCK_STREAM))
        assert speak_for_others(ME, [one.fileno()])


def test_a_pipe_is_ones_own_while_both_ends_are(closing: ExitStack) -> None:
    reader, writer = os.pipe()
    closing.callback(os.close, reader)
    assert not speak_for_others(ME, [reader])
    os.close(writer)
    assert speak_for_others(ME, [reader])


def test_what_tells_of_a_child_or_of_a_set_unknown_speaks_for_others(closing: ExitStack) -> None:
    child = os.pidfd_open(ME)
    closing.callback(os.close, child)
    inner = closing.enter_context(select.epoll())
    assert speak_for_others(ME, [child])
    assert speak_for_others(ME, [inner.fileno()])


def test_events_and_files_do_not(closing: ExitStack) -> None:
    event = os.eventfd(0)
    closing.callback(os.close, event)
    assert not speak_for_others(ME, [event])
    assert not speak_for_others(ME, [])
