"""Sessions end by themselves, or on request, and leave nothing behind."""

import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller_client.holder.link import accept, listen
from controller_client.protocol.messages import InteractiveCmdDone, IoMode
from controller_client.system.process_tree import session_members
from controller_client.system.termination import kill_leftovers
from tests.support.descriptors import without_descriptors
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.processes import (
    is_running,
    pids_with_environment,
    send_signal,
    status_field,
)
from tests.support.waiting import await_until

STUBBORN = (
    "trap '' TERM HUP INT; echo ready; while :; do read -t 1 x < /dev/zero || sleep 0.1; done"
)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


def _left(talk: Conversation) -> list[int]:
    return pids_with_environment(f"HOLDLINE_SESSION={talk.session_id}".encode())


DETACHED = "setsid sleep 60 < /dev/null > /dev/null 2>&1 & disown;"
# A bash waits until its last child, which leaves the terminal's session first, sleeps.
LAST_CHILD_SLEEPS = 'until [ "$(cat /proc/$!/comm)" = sleep ]; do sleep 0.02; done;'

MAIN_THREAD_ENDS = """
import ctypes, os, signal, threading, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(1000,)).start()
print(f"<{os.getpid()}>", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""
"""The kernel shows such a process as a zombie, although its other thread goes on."""


@pytest.mark.parametrize("io_mode", ["pty", "pipe"])
@pytest.mark.parametrize("is_child", [False, True])
async def test_a_process_without_its_main_thread_is_ended_as_any_other(
    host: HolderHost, io_mode: IoMode, *, is_child: bool
) -> None:
    program = host.state_dir / "program.py"
    program.write_text(MAIN_THREAD_ENDS)
    command = f"{sys.executable} {program}"
    talk = await host.run(f"bash -c '{command}; true'" if is_child else command, io_mode=io_mode)
    await talk.shows(b">")
    pid = int(talk.output.strip(b"<>\r\n"))
    await await_until(
        lambda: (status_field(pid, "State") or "").startswith("Z"), 55, "the main thread to end"
    )
    assert is_running(pid)
    await talk.terminate(grace_seconds=0.1)
    done = await talk.done()
    assert (done.end_reason, done.survivors, done.notes) == ("terminated", [], [])
    assert not is_running(pid)


@pytest.mark.requirement("S3.R3.1")
async def test_the_end_is_what_waitpid_says(host: HolderHost) -> None:
    for command, exit_code, signal_name in (
        ("true", 0, None),
        ("sh -c 'exit 41'", 41, None),
        ("bash -c 'kill -SEGV $$'", None, "SIGSEGV"),
    ):
        done = await (await host.run(command)).done()
        assert (done.end_reason, done.exit_code, done.signal) == ("exited", exit_code, signal_name)


async def test_a_program_that_closes_its_terminal_has_not_ended(host: HolderHost) -> None:
    talk = await host.run("bash -c 'exec 0<&- 1>&- 2>&-; sleep 0.7; exit 9'")
    done = await talk.done()
    assert (done.exit_code, done.end_reason) == (9, "exited")
    assert done.duration_seconds > 0.6


async def test_a_terminal_that_was_let_go_of_can_be_opened_again(host: HolderHost) -> None:
    talk = await host.run(
        'bash -c \'exec 0<&- 1>&- 2>&-; sleep 0.3; read -p "again? " x < /dev/tty 2> /dev/tty; '
        "echo got $x > /dev/tty'"
    )
    assert (await talk.prompt()).prompt == "again? "
    await talk.type(b"yes\n")
    assert (await talk.done()).exit_code == 0
    assert talk.output == b"again? yes\r\ngot yes\r\n"


@pytest.mark.requirement("S3.R3.2")
async def test_terminate_asks_first(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'trap \"echo cleaning up; exit 3\" TERM; echo ready; while :; do sleep 0.05; done'"
    )
    await talk.shows(b"ready")
    assert (await talk.terminate()).failure is None
    done = await talk.done()
    assert (done.end_reason, done.exit_code, done.survivors) == ("terminated", 3, [])
    assert b"cleaning up" in talk.output


async def test_an_interactive_shell_that_ignores_term_is_hung_up_on_at_once(
    host: HolderHost,
) -> None:
    talk = await host.run("bash --norc -i")
    await talk.prompt()
    await talk.terminate()
    done = await talk.done()
    assert done.end_reason == "terminated"
    assert done.duration_seconds < 4.5


async def test_what_ignores_every_request_is_killed_after_the_grace(host: HolderHost) -> None:
    talk = await host.run(argv=["bash", "-c", STUBBORN])
    await talk.shows(b"ready")
    await talk.terminate(grace_seconds=0.4)
    done = await talk.done()
    assert (done.end_reason, done.signal, done.survivors) == ("terminated", "SIGKILL", [])
    assert _left(talk) == []


TREE = """
import os, signal, subprocess, sys, time
stubborn = "trap '' TERM HUP INT; while :; do sleep 0.2; done"
plain = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
subprocess.Popen(["setsid", "bash", "-c", stubborn], **plain)
subprocess.Popen(["nohup", "sleep", "300"], **plain)
stopped = subprocess.Popen(["sleep", "300"])
os.kill(stopped.pid, signal.SIGSTOP)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        os.execve("/bin/sleep", ["sleep", "300"], {})
    os._exit(0)
os.wait()
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.requirement("S3.P1.5")
async def test_the_whole_tree_goes_however_it_hides(host: HolderHost) -> None:
    talk = await host.run(argv=[sys.executable, "-c", TREE])
    await talk.shows(b"ready")
    holder = host.holder_pid(talk.session_id)
    members = await await_until(
        lambda: _at_least_five(talk.session_id, holder), 55, "the tree to stand"
    )
    await talk.terminate(grace_seconds=0.5)
    done = await talk.done()
    assert done.survivors == []
    assert [pid for pid in members if is_running(pid)] == []


def _at_least_five(session_id: str, holder: int) -> list[int]:
    members = [
        process.pid
        for process in session_members(session_id, roots=(holder,), terminal_session=None)
    ]
    return members if len(members) >= 6 else []


async def test_a_single_signal_reaches_the_tree_and_the_program_may_ignore_it(
    host: HolderHost,
) -> None:
    talk = await host.run(
        "bash -c 'trap \"echo reloading\" USR1; echo ready; while :; do sleep 0.05; done'"
    )
    await talk.shows(b"ready")
    assert (await talk.terminate(signal="SIGUSR1", escalate=False)).failure is None
    await talk.until(
        lambda: b"reloading" in talk.output or talk.all_of(InteractiveCmdDone), "the trap"
    )
    assert b"reloading" in talk.output
    # Not INT: a bash whose child ended otherwise than by it goes on.
    await talk.terminate(signal="HUP", escalate=False)
    done = await talk.done()
    assert (done.end_reason, done.signal) == ("terminated", "SIGHUP")


async def test_a_real_time_signal_is_sent_and_named(host: HolderHost) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    assert (await talk.terminate(signal="SIGRTMIN+3", escalate=False)).failure is None
    assert (await talk.done()).signal == "SIGRTMIN+3"


async def test_an_unknown_signal_is_refused(host: HolderHost) -> None:
    talk = await host.run("cat")
    failure = (await talk.terminate(signal="SIGWHATEVER")).failure
    assert failure is not None
    assert failure.code == "UNKNOWN_SIGNAL"
    await talk.prompt()


async def test_terminating_what_has_ended_is_no_failure(host: HolderHost) -> None:
    talk = await host.run("true")
    await talk.done()
    assert (await talk.terminate()).failure is None


async def test_a_child_that_holds_the_terminal_does_not_hold_up_the_end(host: HolderHost) -> None:
    talk = await host.run("""bash -c "trap '' HUP TERM; sleep 60 & echo started; exit 5" """)
    done = await talk.done()
    assert (done.exit_code, done.notes, done.survivors) == (5, ["tty_held"], [])
    assert done.end_reason == "exited"
    assert talk.output == b"started\r\n"
    assert _left(talk) == []


async def test_a_daemon_that_detached_itself_is_left_alone_and_named(host: HolderHost) -> None:
    talk = await host.run(f"bash -c '{DETACHED} {LAST_CHILD_SLEEPS} exit 0'")
    done = await talk.done()
    assert (done.exit_code, done.notes) == (0, ["left_running"])
    (pid,) = _left(talk)
    assert done.survivors == [f"sleep[{pid}]"]
    talk.forget()
    await await_until(
        lambda: not host.directory(talk.session_id).path.exists(), 55, "the session to be forgotten"
    )
    assert is_running(pid)
    assert kill_leftovers(talk.session_id) == []
    assert not is_running(pid)


@pytest.mark.parametrize("times", [30])
async def test_a_program_that_ends_at_once_loses_none_of_its_output(
    host: HolderHost, times: int
) -> None:
    for _ in range(times):
        talk = await host.run("sh -c 'head -c 60000 /dev/zero | tr \"\\0\" x; exit 7'")
        done = await talk.done()
        assert (done.exit_code, len(talk.output), done.streams[0].next_offset) == (7, 60000, 60000)
        talk.forget()


async def test_a_holder_that_is_killed_leaves_only_what_its_cookie_finds(host: HolderHost) -> None:
    talk = await host.run("bash -c 'trap \"\" HUP; setsid sleep 60 & sleep 60'")
    await await_until(lambda: len(_left(talk)) >= 3, 55, "the tree to stand")
    send_signal(host.holder_pid(talk.session_id), signal.SIGKILL)
    directory = host.directory(talk.session_id)
    await await_until(lambda: not directory.is_holder_alive(), 55, "the holder to die")
    assert _left(talk)
    assert kill_leftovers(talk.session_id) == []
    assert _left(talk) == []


async def test_orphans_are_reaped(host: HolderHost) -> None:
    talk = await host.run("bash -c 'for i in 1 2 3 4 5; do (setsid true &) ; done; read x'")
    await talk.prompt()
    holder = host.holder_pid(talk.session_id)
    children = Path(f"/proc/{holder}/task/{holder}/children")
    await await_until(
        lambda: len(children.read_text().split()) == 1, 55, "the orphans to be reaped"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("has_begun", [False, True])
def test_only_its_own_user_may_talk_to_a_holder(tmp_path: Path, *, has_begun: bool) -> None:
    """The directory is closed to others; the socket turns them away as well."""
    tmp_path.chmod(0o755)
    back = Path.cwd()
    os.chdir(tmp_path)
    try:
        with listen("holder.sock") as listener:
            Path("holder.sock").chmod(0o777)
            child = os.fork()
            if child == 0:
                os.setgid(65534)
                os.setuid(65534)
                with socket.socket(socket.AF_UNIX) as stranger:
                    stranger.settimeout(20)
                    stranger.connect("holder.sock")
                    os._exit(0 if stranger.recv(1) == b"" else 1)
            try:
                listener.setblocking(True)
                assert accept(listener, has_begun=has_begun) is None
            finally:
                status = os.waitpid(child, 0)[1]
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        os.chdir(back)


async def test_a_holder_without_descriptors_ends_its_tree_once_it_can_see_it(
    host: HolderHost,
) -> None:
    talk = await host.run(
        'bash -c \'trap "" TERM HUP; (trap "" TERM HUP; setsid sleep 300 & sleep 300) & echo '
        "ready; wait'"
    )
    await talk.shows(b"ready")
    await await_until(lambda: len(_left(talk)) >= 4, 55, "the tree to stand")
    with without_descriptors(host.holder_pid(talk.session_id)):
        assert (await talk.terminate(grace_seconds=0.2)).failure is None
        (pid,) = [pid for pid in _left(talk) if pid == host.directory(talk.session_id).read_pid()]
        await await_until(
            lambda: not is_running(pid),
            55,
            "the program itself to be killed, as it can be without a look",
        )
        assert len(_left(talk)) >= 1
        assert not talk.all_of(InteractiveCmdDone)
    done = await talk.done()
    assert (done.end_reason, done.survivors) == ("terminated", [])
    assert _left(talk) == []


async def test_a_signal_to_a_tree_that_cannot_be_seen_is_sent_once_it_can(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'trap \"echo reloading\" USR1; echo ready; while :; do sleep 0.05; done'"
    )
    await talk.shows(b"ready")
    with without_descriptors(host.holder_pid(talk.session_id)):
        assert (await talk.terminate(signal="SIGUSR1", escalate=False)).failure is None
    await talk.shows(b"reloading")


@pytest.mark.parametrize("is_seen_in_time", [True, False])
async def test_what_a_program_left_is_named_or_said_to_be_unknown(
    host: HolderHost, is_seen_in_time: bool
) -> None:
    script = f"{DETACHED} read x; sleep 0.3"
    talk = await host.run(argv=["bash", "-c", script], io_mode="pipe", stdin="open")
    await await_until(lambda: len(_left(talk)) == 2, 55, "the child to be there")
    holder = host.holder_pid(talk.session_id)
    program = host.directory(talk.session_id).read_pid()
    assert program is not None
    (child,) = [pid for pid in _left(talk) if pid != program]
    try:
        with _no_descriptors_even_after_the_end(holder):
            await talk.type(b"\n")
            if is_seen_in_time:
                await await_until(lambda: not is_running(program), 55, "the program to end")
            else:
                done = await talk.done()
        done = await talk.done()
        assert (done.exit_code, is_running(child)) == (0, True)
        expected = (
            (["left_running"], [f"sleep[{child}]"]) if is_seen_in_time else (["left_unknown"], [])
        )
        assert (done.notes, done.survivors) == expected
    finally:
        send_signal(child, signal.SIGKILL)


@contextmanager
def _no_descriptors_even_after_the_end(pid: int) -> Iterator[None]:
    """A limit below what is open: what is closed meanwhile does not help."""
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("io_mode", ["pty", "pipe"])
async def test_a_child_that_holds_the_output_ends_its_detached_siblings_too(
    host: HolderHost, io_mode: IoMode
) -> None:
    detached = f"{DETACHED} {LAST_CHILD_SLEEPS}"
    holds = f"trap '' HUP; {detached} setsid sleep 61 & {LAST_CHILD_SLEEPS} exit 0"
    talk = await host.run(argv=["bash", "-c", holds], io_mode=io_mode)
    done = await talk.done()
    assert (done.exit_code, done.notes, done.survivors) == (
        0,
        ["tty_held" if io_mode == "pty" else "output_held"],
        [],
    )
    assert _left(talk) == []
    alone = await host.run(argv=["bash", "-c", f"{detached} exit 0"], io_mode=io_mode)
    assert (await alone.done()).notes == ["left_running"]
    assert kill_leftovers(alone.session_id) == []
