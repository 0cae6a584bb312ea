"""Descriptors of this process, which speak for it alone or for other processes."""

import ctypes
import os
import pty
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controller_client.terminal_state.kernel import descriptors
from controller_client.terminal_state.kernel.descriptors import (
    foreign_sockets,
    has_timer,
    speak_for_others,
    speak_for_strangers,
)
from tests.support.waiting import wait_until

ME = os.getpid()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Close the descriptors that a test opened."""
    with ExitStack() as stack:
        yield stack


def _pair(closing: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return closing.enter_context(ours), closing.enter_context(theirs)


def test_a_pair_of_sockets_in_one_process_speaks_for_no_other(closing: ExitStack) -> None:
    ours, theirs = _pair(closing)
    assert not speak_for_others(ME, [ours.fileno(), theirs.fileno()])
    theirs.close()
    assert speak_for_others(ME, [ours.fileno()])


def test_a_socket_to_another_process_speaks_for_others(closing: ExitStack) -> None:
    ours, theirs = _pair(closing)
    pid = os.fork()
    if pid == 0:
        ours.close()
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    assert speak_for_others(ME, [ours.fileno()])
    assert ours.fileno() in foreign_sockets(ME)
    assert speak_for_strangers(ME, [ours.fileno()])
    assert not speak_for_strangers(ME, [ours.fileno()], [pid])
    ours.send(b"x")
    os.waitpid(pid, 0)


def test_network_sockets_and_lone_sockets_speak_for_others(closing: ExitStack) -> None:
    for family in (socket.AF_INET, socket.AF_UNIX):
        one = closing.enter_context(socket.socket(family, socket.SOCK_STREAM))
        assert speak_for_others(ME, [one.fileno()])


def test_a_connection_inside_of_the_tree_is_to_no_stranger(
    closing: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests that run at the same time may have more connections than are looked at.
    monkeypatch.setattr(descriptors, "_MAX_TABLE_BYTES", 64 * 1024 * 1024)
    server = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
    near = closing.enter_context(socket.create_connection(server.getsockname()))
    pid = os.fork()
    if pid == 0:
        far, _ = server.accept()
        near.close()
        far.recv(1)
        os._exit(0)
    try:
        wait_until(lambda: not speak_for_strangers(ME, [near.fileno()], [pid]), 10, "the far end")
        assert speak_for_strangers(ME, [near.fileno()])
        assert speak_for_strangers(ME, [server.fileno()], [pid])
    finally:
        near.send(b"x")
        os.waitpid(pid, 0)


def test_a_connection_beyond_the_bound_of_the_table_is_to_a_stranger(
    closing: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
    near = closing.enter_context(socket.create_connection(server.getsockname()))
    # Wherever the bound cuts a row of the table.
    for bound in range(330):
        monkeypatch.setattr(descriptors, "_MAX_TABLE_BYTES", bound)
        assert speak_for_strangers(ME, [near.fileno()], [ME])


def test_a_pipe_with_both_ends_in_one_process_speaks_for_no_other(closing: ExitStack) -> None:
    reader, writer = os.pipe()
    closing.callback(os.close, reader)
    assert not speak_for_others(ME, [reader])
    os.close(writer)
    assert speak_for_others(ME, [reader])


def test_children_and_unknown_sets_speak_for_others(closing: ExitStack) -> None:
    child = os.pidfd_open(ME)
    closing.callback(os.close, child)
    inner = closing.enter_context(select.epoll())
    assert speak_for_others(ME, [child])
    assert speak_for_others(ME, [inner.fileno()])


def test_what_another_process_of_the_tree_holds_speaks_for_others(closing: ExitStack) -> None:
    reader, writer = os.pipe()
    ours, theirs = _pair(closing)
    event, timer = os.eventfd(0), ctypes.CDLL(None).timerfd_create(1, 0)
    for fd in (reader, writer, event, timer):
        closing.callback(os.close, fd)
    assert not speak_for_others(ME, [reader, event, ours.fileno()])
    pid = os.fork()
    if pid == 0:
        theirs.recv(1)
        os._exit(0)
    for fd in (reader, event, ours.fileno()):
        assert speak_for_others(ME, [fd], [pid])
        # A child that is in no tree is one that has come to this process as to a holder.
        assert speak_for_others(ME, [fd])
        assert not speak_for_strangers(ME, [fd], [pid])
    assert not speak_for_others(ME, [timer], [pid])
    assert has_timer(ME, [timer])
    assert not has_timer(ME, [reader, event])
    ours.send(b"x")
    os.waitpid(pid, 0)
    assert not speak_for_others(ME, [reader, event, ours.fileno()], [pid])


def test_a_number_tells_events_apart(closing: ExitStack) -> None:
    pid = os.fork()
    if pid == 0:
        os.eventfd(0)
        signal.pause()
    event = os.eventfd(0)
    closing.callback(os.close, event)
    has_numbers = "eventfd-id" in Path(f"/proc/self/fdinfo/{event}").read_text()
    try:
        wait_until(lambda: "[eventfd]" in str(_links(pid)), 10, "the other event")
        assert speak_for_others(ME, [event], [pid]) is not has_numbers
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("kind", ["named pipe", "other terminal", "inotify", "signal"])
def test_all_that_is_not_proven_speaks_for_others(
    kind: str, tmp_path: Path, closing: ExitStack
) -> None:
    os.mkfifo(tmp_path / "fifo")
    libc = ctypes.CDLL(None)
    mask = (ctypes.c_uint64 * 16)(1)
    master, slave = pty.openpty()
    fds = {
        "named pipe": os.open(tmp_path / "fifo", os.O_RDWR),
        "other terminal": slave,
        "inotify": libc.inotify_init(),
        "signal": libc.signalfd(-1, ctypes.byref(mask), 0),
    }
    for fd in (master, *fds.values()):
        closing.callback(os.close, fd)
    assert speak_for_others(ME, [fds[kind]])


def _links(pid: int) -> list[str]:
    return [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]


def test_events_and_files_speak_for_no_other_process(closing: ExitStack) -> None:
    event = os.eventfd(0)
    closing.callback(os.close, event)
    assert not speak_for_others(ME, [event])
    assert not speak_for_others(ME, [])
