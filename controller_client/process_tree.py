"""The processes of this machine, and which of them belong to a session: by descent, by terminal session, by cookie.

Descent alone is enough while the holder is a child subreaper (Linux): whatever double-forks comes back to it. The cookie in the
environment finds what a dead holder left behind; the session number finds what dropped its environment.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from controller_client.child_environment import SESSION_COOKIE

_PROC = "/proc"
# Gone for every purpose but the reaping.
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True)
class ProcessInfo:
    """One live process. ``started`` (clock ticks since boot; 0 where unknown) tells it from a later one of the same number."""

    pid: int
    parent_pid: int
    session: int
    state: str
    started: int
    name: str

    @property
    def label(self) -> str:
        """For people: ``name[pid]``."""
        return f"{self.name}[{self.pid}]"


def live_processes() -> dict[int, ProcessInfo]:
    """Every process that is not dead, by pid."""
    listed = _from_proc() if sys.platform.startswith("linux") else _from_ps()
    return {process.pid: process for process in listed if process.state not in _DEAD_STATES}


def session_members(session_id: str, *, roots: Iterable[int], terminal_session: int | None, also: Iterable[int] = ()) -> list[ProcessInfo]:
    """Every live process of a session: below ``roots`` (not these themselves), in its terminal session, with its cookie, or in ``also``."""
    processes = live_processes()
    roots = frozenset(roots)
    members = _descendants(processes, roots) | (processes.keys() & set(also))
    for process in processes.values():
        if terminal_session is not None and process.session == terminal_session:
            members.add(process.pid)
    cookie = f"{SESSION_COOKIE}={session_id}".encode()
    members |= {pid for pid in processes if pid not in members and pid != os.getpid() and _carries(pid, cookie)}
    return [processes[pid] for pid in sorted(members - roots)]


def read_process(pid: int) -> ProcessInfo | None:
    """One process, dead or alive; None if there is none."""
    try:
        raw = Path(_PROC, str(pid), "stat").read_bytes()
    except OSError:
        return None
    return parse_stat(raw)


def own_children() -> list[int]:
    """Direct children of this single-threaded process, also dead ones (Linux; elsewhere nobody is re-parented to us)."""
    pid = os.getpid()
    try:
        return [int(child) for child in Path(_PROC, str(pid), "task", str(pid), "children").read_bytes().split()]
    except OSError:
        return []


def parse_stat(raw: bytes) -> ProcessInfo:
    """A line of ``/proc/<pid>/stat``; the name may contain anything, also parentheses and spaces."""
    head, _, tail = raw.rpartition(b")")
    number, _, name = head.partition(b"(")
    fields = tail.split()
    return ProcessInfo(
        pid=int(number),
        state=fields[0].decode("ascii", "replace"),
        parent_pid=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        name=name.decode(errors="replace"),
    )


def parse_ps(text: str) -> Iterator[ProcessInfo]:
    """Lines of ``ps -axo pid=,ppid=,sess=,stat=,comm=``; macOS prints an address for the session, which then counts as unknown."""
    for line in text.splitlines():
        fields = line.split(None, 4)
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            session = int(fields[2]) if fields[2].isdigit() else 0
            yield ProcessInfo(int(fields[0]), int(fields[1]), session, fields[3][0], 0, fields[4].rpartition("/")[2])


def _from_proc() -> Iterator[ProcessInfo]:
    for entry in os.listdir(_PROC):  # noqa: PTH208 (no Path per process)
        if entry.isdigit() and (process := read_process(int(entry))) is not None:
            yield process


def _from_ps() -> Iterator[ProcessInfo]:
    yield from parse_ps(_run_ps("-axo", "pid=,ppid=,sess=,stat=,comm="))


def _run_ps(*arguments: str) -> str:
    import subprocess

    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(["/bin/ps", *arguments], capture_output=True, text=True, errors="replace", timeout=5, check=False).stdout
    return ""


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


def _carries(pid: int, cookie: bytes) -> bool:
    """Whether the process started with the cookie in its environment; no, if we may not look."""
    if not sys.platform.startswith("linux"):
        return cookie.decode() in _run_ps("-Eww", "-o", "command=", "-p", str(pid)).split()
    try:
        environment = Path(_PROC, str(pid), "environ").read_bytes()
    except OSError:
        return False
    return cookie in environment and cookie in environment.split(b"\0")
