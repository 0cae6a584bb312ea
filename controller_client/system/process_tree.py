"""Lists processes, and finds those of a session: by descent, terminal session or cookie.

Descent alone is enough while the holder is a child subreaper (Linux): whatever double-forks comes
back to it. The cookie in the environment finds what a dead holder left behind; the number of the
terminal session finds what dropped its environment.

Every function raises OSError when it cannot look now, for want of a descriptor, say. A process that
nobody can look at has not ended, and a list with a hole in it would make the caller forget one.
What another user hides is not seen, and is no error; ``hidden_children`` knows of some. ADR 0019
says why this is not psutil.
"""

import errno
import os
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from controller_client.system.absence import is_gone

SESSION_COOKIE = "HOLDLINE_SESSION"
"""Variable that every process of a session inherits, so that it is found wherever it moved to."""
HIDDEN_NAME: Final = "hidden"
"""In place of the name of a process that hides from this user."""
_PROC = "/proc"
DEAD_STATES = frozenset("ZXx")
"""States of processes that have ended and only wait to be reaped."""
_THREADS_LIVE: Final = "S"
_MOST_PASSES: Final = 16
_READ_BYTES: Final = 16 * 1024


@dataclass(frozen=True)
class ProcessInfo:
    """One process at the moment when it was looked at.

    ``started`` (clock ticks since boot; 0 where unknown) tells it from a later process that has the
    same pid.
    """

    pid: int
    parent_pid: int
    session: int
    state: str
    started: int
    name: str

    @property
    def label(self) -> str:
        """The process as people read it: ``name[pid]``."""
        return f"{self.name}[{self.pid}]"

    @property
    def mark(self) -> str:
        """The process as ``named_process`` finds it: ``<pid>:<start>``."""
        return f"{self.pid}:{self.started}"


def live_processes() -> dict[int, ProcessInfo]:
    """Return every process that is not dead, by pid. Raises OSError."""
    if sys.platform.startswith("linux"):
        listed = _from_proc()
    else:
        rows = parse_ps(_run_ps("-axo", "pid=,ppid=,sess=,stat=,comm="))
        listed = {process.pid: process for process in rows}
    return {pid: process for pid, process in listed.items() if process.state not in DEAD_STATES}


def session_members(
    session_id: str, *, roots: Iterable[int], terminal_session: int | None, also: Iterable[int] = ()
) -> list[ProcessInfo]:
    """Return every live process of a session, in the order of pids. Raises OSError.

    These are the processes below ``roots`` (not the roots themselves), those in the terminal
    session, those with the cookie of the session, and those in or below ``also``.
    """
    processes = live_processes()
    roots, also = frozenset(roots), frozenset(also)
    members = _descendants(processes, roots | also) | (processes.keys() & also)
    # 0 is no session that a terminal has: macOS does not tell the number.
    if terminal_session:
        members |= {pid for pid in processes if processes[pid].session == terminal_session}
    others = processes.keys() - members - {os.getpid()}
    members |= {pid for pid in others if session_cookie_of(pid) == session_id}
    return [processes[pid] for pid in sorted(members - roots)]


def read_process(pid: int) -> ProcessInfo | None:
    """Return one process, dead or alive; None if there is none. Raises OSError."""
    raw = _read_of(pid, "stat")
    return None if raw is None else parse_stat(raw)


def is_same(process: ProcessInfo) -> bool:
    """Return whether the process still exists, and its pid was not reused. Raises OSError."""
    current = read_process(process.pid)
    return current is not None and current.started == process.started


def named_process(mark: str) -> ProcessInfo | None:
    """Return the process of a mark, if it is still there. Raises OSError."""
    pid, _, started = mark.partition(":")
    process = read_process(int(pid))
    return process if process is not None and process.started == int(started) else None


def is_below_or_gone(pid: int, root: int) -> bool:
    """Return whether a process descends from ``root``, or has ended, so that nobody can tell.

    A process that hides from this user is none of both. Raises OSError.
    """
    for _ in range(_MOST_PASSES):
        current = pid
        while current != root:
            process = read_process(current)
            if process is None:
                break
            if process.parent_pid == 0:
                return False
            current = process.parent_pid
        else:
            return True
        if _is_there(current):
            return False
        if current == pid:
            break
        # A process on the way has ended, and its children have another parent now.
    return True


def own_children() -> list[int]:
    """Return the direct children of this process's main thread, dead ones among them.

    Linux only; elsewhere no process is re-parented to this one. Raises OSError.
    """
    pid = os.getpid()
    return [int(child) for child in (_read_of(pid, f"task/{pid}/children") or b"").split()]


def hidden_children(seen: Container[int]) -> list[ProcessInfo]:
    """Return live children of this process, none of ``seen``, that hide from this user.

    So does a program of root where ``/proc`` is mounted with hidepid. Raises OSError.
    """
    return [
        ProcessInfo(
            pid=pid, parent_pid=os.getpid(), session=0, state="S", started=0, name=HIDDEN_NAME
        )
        for pid in own_children()
        if pid not in seen and _is_child_alive(pid) and read_process(pid) is None
    ]


def own_descendants(limit: int) -> list[ProcessInfo]:
    """Return live processes below this one, at most ``limit``. Linux only. Raises OSError.

    This reads only the processes that it finds, however many others the host has.
    """
    found: dict[int, ProcessInfo] = {}
    todo = _children_of(os.getpid())
    while todo and len(found) < limit:
        pid = todo.pop()
        below = _children_of(pid)
        process = read_process(pid)
        if process is not None and pid not in found and process.state not in DEAD_STATES:
            found[pid] = process
            todo += below
    return list(found.values())


def parse_stat(raw: bytes) -> ProcessInfo:
    """Parse ``/proc/<pid>/stat``; the name may contain anything, also parentheses and spaces."""
    head, _, tail = raw.rpartition(b")")
    number, _, name = head.partition(b"(")
    fields = tail.split()
    state, threads = fields[0].decode("ascii", "replace"), int(fields[17])
    return ProcessInfo(
        pid=int(number),
        # A zombie with more than one thread is a main thread that has ended before the others.
        state=_THREADS_LIVE if state in DEAD_STATES and threads > 1 else state,
        parent_pid=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        name=name.decode(errors="replace"),
    )


def parse_ps(text: str) -> Iterator[ProcessInfo]:
    """Parse the lines of ``ps -axo pid=,ppid=,sess=,stat=,comm=``.

    macOS prints an address in place of the session, which then counts as unknown: 0.
    """
    for line in text.splitlines():
        fields = line.split(None, 4)
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            session = int(fields[2]) if fields[2].isdigit() else 0
            yield ProcessInfo(
                int(fields[0]),
                int(fields[1]),
                session,
                fields[3][0],
                0,
                fields[4].rpartition("/")[2],
            )


def _from_proc() -> dict[int, ProcessInfo]:
    """Return all processes, dead ones among them, as of one moment: the last listing of pids.

    Otherwise a process that forks and ends while the others are read would hide its child: the
    child was not listed, or was read while its parent was one that is gone. So the listing is
    repeated until it names no new pid, and no process whose parent has ended. Raises OSError.
    """
    found: dict[int, ProcessInfo | None] = {}
    # A process that was read again is not read a third time: its parent hides from this user.
    sure: set[ProcessInfo] = set()
    for _ in range(_MOST_PASSES):
        listed = {int(entry) for entry in os.listdir(_PROC) if entry.isdigit()}
        found = {pid: process for pid, process in found.items() if pid in listed}
        orphans = {
            process.pid
            for process in found.values()
            if process is not None and process not in sure and _is_orphan(process, found)
        }
        unread = (listed - found.keys()) | orphans
        if not unread:
            break
        found |= {pid: read_process(pid) for pid in unread}
        sure |= {process for pid in orphans if (process := found[pid]) is not None}
    return {pid: process for pid, process in found.items() if process is not None}


def _is_orphan(process: ProcessInfo, found: dict[int, ProcessInfo | None]) -> bool:
    """Return whether the parent has ended since the process was read."""
    parent = found.get(process.parent_pid)
    # 0 is a parent outside of this namespace.
    return process.parent_pid != 0 and (parent is None or parent.state in DEAD_STATES)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_child_alive(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _run_ps(*arguments: str) -> str:
    """Return what ps printed: nothing if it knows of no such process. Raises OSError."""
    import subprocess

    try:
        return subprocess.run(
            ["/bin/ps", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5,
            check=False,
        ).stdout
    except subprocess.SubprocessError as error:
        raise OSError(errno.EAGAIN, "the processes could not be listed") from error


def _read_of(pid: int, name: str) -> bytes | None:
    """Return a file of a process; None if it has ended, or hides from us. Raises OSError."""
    try:
        return _content_of(f"{_PROC}/{pid}/{name}")
    except PermissionError:
        return None
    except OSError as error:
        if is_gone(error):
            return None
        raise


def _content_of(path: str) -> bytes:
    # An idle holder does little but this, and pathlib would take three times as long.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(descriptor, _READ_BYTES):
            content += part
        return content
    finally:
        os.close(descriptor)


def _descendants(processes: dict[int, ProcessInfo], roots: frozenset[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent_pid, []).append(process.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def _children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process; none if it is gone, or hides from us.

    Raises OSError.
    """
    try:
        tasks = os.listdir(f"{_PROC}/{pid}/task")
    except PermissionError:
        return []
    except OSError as error:
        if is_gone(error):
            return []
        raise
    return [
        int(child)
        for task in tasks
        for child in (_read_of(pid, f"task/{task}/children") or b"").split()
    ]


def session_cookie_of(pid: int) -> str | None:
    """Return the session that the environment of a process named when the process started.

    None if it names none, or if this user may not look. Raises OSError.
    """
    mark = f"{SESSION_COOKIE}=".encode()
    if sys.platform.startswith("linux"):
        environment = _read_of(pid, "environ") or b""
        # Hardly any process has the mark, so most environments need not be split.
        entries = environment.split(b"\0") if mark in environment else []
    else:
        entries = _run_ps("-Eww", "-o", "command=", "-p", str(pid)).encode().split()
    found = (entry.removeprefix(mark) for entry in entries if entry.startswith(mark))
    return next((value.decode(errors="replace") for value in found), None)
