"""The sessions of this host as their files and holders tell of them: no server is asked.

Whoever asks becomes the owner of the state directory first: a holder answers nobody else.
"""

import argparse
import asyncio
import json
import os
import pwd
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import Final

from controller_client.administration import live_output
from controller_client.administration.installation import find, groups_of, one_line, say
from controller_client.administration.live_output import LiveOutput
from controller_client.administration.managers import manager_of
from controller_client.config.errors import ConfigurationError
from controller_client.config.places import SERVICE_STATE_DIR, default_state_dir
from controller_client.protocol.messages import (
    FromHolder,
    HolderAttach,
    InteractiveCmdDone,
    InteractiveOutput,
    StreamOffset,
    TerminateCmd,
)
from controller_client.server_link.errors import HolderUnreachable
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.client import HolderClient
from controller_client.server_link.holders.end_watch import EndWatch
from controller_client.server_link.holders.leftovers import Leftovers
from controller_client.session_files.daemon_status import is_daemon_running
from controller_client.session_files.directory import SessionDirectory, all_sessions
from controller_client.session_files.one_shot import as_start
from controller_client.system.absence import is_there, raise_unknown
from controller_client.system.adoption import Left
from controller_client.system.files.plain_file import open_plain
from controller_client.system.users.two_users import acts_as_another

# The steps of a watch take 24 s, and what cannot be killed takes 2 s twice.
_END_SECONDS: Final = 40.0
_WINDOW_BYTES: Final = 1 << 30


@dataclass(frozen=True)
class Found:
    """A session of this host; ``is_running`` is its holder's life, not the server's word."""

    session_id: str
    command: str
    pid: int | None
    is_running: bool
    since: float


def sessions_of(state_dir: Path) -> list[Found]:
    """Return every session of the state directory. Raises ConfigurationError."""

    async def find_all() -> list[Found]:
        looked_at = [await _found_yet(directory) for directory in all_sessions(state_dir)]
        return [one for one in looked_at if one is not None]

    try:
        return asyncio.run(find_all())
    except OSError as error:
        raise ConfigurationError(
            f"cannot list the sessions in {state_dir}: {error.strerror}"
        ) from None


async def _found_yet(directory: SessionDirectory) -> Found | None:
    """Return what is found in the directory; None if the daemon removed it meanwhile."""
    try:
        return await _found(directory)
    except FileNotFoundError:
        if is_there(directory.path):
            raise
        return None


async def _found(directory: SessionDirectory) -> Found:
    start = directory.read_start()
    words = (
        "" if start is None else (as_start(start).command or " ".join(as_start(start).argv or ()))
    )
    return Found(
        session_id=directory.session_id,
        command=words,
        pid=directory.read_pid(),
        is_running=await _is_running(directory),
        since=directory.path.stat().st_mtime,
    )


async def _is_running(directory: SessionDirectory) -> bool:
    """Return whether the holder lives and its program has not ended. Raises OSError.

    A program can write the record of its own end. So that is believed of a holder only if it has
    nothing below it any more, or says so itself.
    """
    holder = _watch(directory).holder
    holder.recall()
    is_recorded = directory.read_done() is not None
    if holder.pid is None:
        return not is_recorded and _is_held(directory)
    if not is_recorded:
        return holder.living() is not None
    if holder.is_alone():
        return False
    try:
        client, summary = await HolderClient.open(directory, holder_pid=holder.pid)
    except HolderUnreachable:
        return holder.living() is not None
    client.close()
    return summary.state != "done"


def _is_held(directory: SessionDirectory) -> bool:
    try:
        return directory.is_holder_alive()
    except OSError as error:
        # A program has spoiled the lock, and no process leads to the holder.
        raise_unknown(error)
        return False


def _watch(directory: SessionDirectory) -> EndWatch:
    """Return the daemon's watch over one session, for a process that no child comes to."""

    async def nothing_adopted(_session_id: str) -> Left:
        return Left([], is_all=False)

    return EndWatch(Aftermath(directory, None, nothing_adopted, Leftovers(directory)))


def show(options: argparse.Namespace) -> int:
    """List the sessions, as lines or as JSON."""
    state_dir = state_dir_of(options)
    become_owner(state_dir)
    found = sessions_of(state_dir)
    if options.json:
        say(json.dumps([asdict(one) for one in found]))
        return 0
    for one in found:
        state = f"process {one.pid}" if one.is_running else "ended"
        say(f"{one.session_id}  {state}  {one_line(one.command)}")
    if not found:
        say(f"no sessions in {state_dir}{_hint(state_dir)}")
    return 0


def _hint(state_dir: Path) -> str:
    """Say where the host's service has its sessions, to a user who has looked elsewhere."""
    if os.geteuid() == 0 or state_dir == SERVICE_STATE_DIR or not is_there(SERVICE_STATE_DIR):
        return ""
    return f"; those of the service are in {SERVICE_STATE_DIR}: use sudo"


def kill(options: argparse.Namespace) -> int:
    """End the named sessions, or all of them; returns 1 if one goes on."""
    state_dir = state_dir_of(options)
    become_owner(state_dir)
    running = [one for one in sessions_of(state_dir) if one.is_running]
    named = {_named(running, text): None for text in options.session}
    chosen = running if options.all else [*named]
    if not chosen and not options.all:
        raise ConfigurationError("name a session, or use --all; holdline-controller sessions")
    left = end_sessions(state_dir, chosen)
    for one in chosen:
        say(f"{one.session_id}  {'still runs' if one in left else 'ended'}")
    return 1 if left else 0


def _named(running: Sequence[Found], text: str) -> Found:
    # An empty name is a variable of a script that was not set: it names no session.
    matching = [one for one in running if text and one.session_id.startswith(text)]
    if len(matching) != 1:
        count = len(matching) or "no"
        raise ConfigurationError(f"{count} running sessions begin with {text!a}")
    return matching[0]


def end_sessions(state_dir: Path, chosen: Sequence[Found]) -> list[Found]:
    """End all processes of the sessions as the daemon does; return the sessions that go on."""

    async def end_all() -> list[bool]:
        return await asyncio.gather(*(_end(state_dir, one.session_id) for one in chosen))

    ended = asyncio.run(end_all())
    return [one for one, is_ended in zip(chosen, ended, strict=True) if not is_ended]


async def _end(state_dir: Path, session_id: str) -> bool:
    """Ask the holder to end its session; if it does not act, end it as the daemon does."""
    directory = SessionDirectory(state_dir / "sessions" / session_id)
    watch, asked = _watch(directory), TerminateCmd(session_id=session_id, seq=0)
    watch.recall()
    client = None
    try:
        # From now on the watch continues a holder that a program has stopped, so it can answer. It
        # does nothing to the holder of another user's program, which could not have stopped it:
        # only the daemon can end what such a holder leaves.
        if watch.holder.pid is None or not acts_as_another(watch.holder.pid):
            watch.on_command(asked)
        with suppress(HolderUnreachable):
            client, _ = await HolderClient.open(directory, watch.heard, holder_pid=watch.holder.pid)
            client.send(asked)
        async with asyncio.timeout(_END_SECONDS):
            while watch.is_cleaning_up or await _is_running(directory):  # noqa: ASYNC110 (other processes end it)
                await asyncio.sleep(0.05)
        done = directory.read_done()
    except OSError:  # also TimeoutError
        return False
    finally:
        watch.stop()
        if client is not None:
            client.close()
    return done is None or done.end_reason != "lost" or not done.survivors


def attach(options: argparse.Namespace) -> int:
    """Show what the server has not stored yet, and what comes, until the end or Ctrl-C."""
    state_dir = state_dir_of(options)
    become_owner(state_dir)
    if is_daemon_running(state_dir):
        raise ConfigurationError(
            "a daemon runs here, and a holder talks to one at a time: look at the session in the "
            "server's console, or stop the daemon first"
        )
    chosen = _named([one for one in sessions_of(state_dir) if one.is_running], options.session)
    directory = SessionDirectory(state_dir / "sessions" / chosen.session_id)
    try:
        asyncio.run(_show(directory))
    except HolderUnreachable as error:
        raise ConfigurationError(str(error)) from None
    except KeyboardInterrupt:
        pass
    return 0


async def _show(directory: SessionDirectory) -> None:
    over = asyncio.Event()
    live = LiveOutput(get_terminal_size) if sys.stdout.isatty() else None

    def on_message(message: FromHolder) -> None:
        if isinstance(message, InteractiveOutput):
            if live is not None:
                live_output.show(live.add(message.stream, message.data))
                return
            sys.stdout.buffer.write(message.data)
            sys.stdout.buffer.flush()
        elif isinstance(message, InteractiveCmdDone):
            over.set()

    client, summary = await HolderClient.open(directory, on_message, over.set)
    try:
        # Nothing is acknowledged, so the server gets all of it later.
        begin = [
            StreamOffset(
                session_id=summary.session_id, stream=kept.stream, offset=kept.first_offset
            )
            for kept in summary.streams
        ]
        client.send(
            HolderAttach(session_id=summary.session_id, window_bytes=_WINDOW_BYTES, offsets=begin)
        )
        await over.wait()
        if live is not None:
            live_output.show(live.finish())
    finally:
        client.close()


def logs(options: argparse.Namespace) -> int:
    """Show the log of the daemon with the program that has it.

    A program of a session may be able to write to a log that is a file. So a terminal gets it as it
    gets a program's output. The journal makes its lines harmless itself.
    """
    options.user, options.action = os.geteuid() != 0, "logs"
    place = find(options)
    manager = manager_of(place)
    command = manager.log_command(options.lines, follow=options.follow)
    if manager.log is not None:
        become_owner(place.state_dir)
        _make_input(manager.log)
    try:
        if manager.log is not None and sys.stdout.isatty():
            return live_output.show_output_of(command)
        os.execvp(command[0], command)  # noqa: S606 (the manager's own command)
    except OSError as error:
        raise ConfigurationError(f"cannot run {command[0]}: {error.strerror}") from None
    except KeyboardInterrupt:
        return 0


def _make_input(log: Path) -> None:
    """Make a log the standard input. Raises ConfigurationError.

    Programs of sessions may be able to put something else in its place.
    """
    try:
        with open_plain(log) as file:
            os.dup2(file.fileno(), 0)
    except OSError as error:
        raise ConfigurationError(f"cannot read {log}: {error.strerror}") from None


def state_dir_of(options: argparse.Namespace) -> Path:
    """Return the state directory that is meant: the named one, or else the usual one."""
    if options.state_dir is not None:
        return Path(options.state_dir)
    if os.geteuid() == 0 and SERVICE_STATE_DIR.is_dir():
        return SERVICE_STATE_DIR
    return default_state_dir()


def become_owner(state_dir: Path) -> None:
    """Go on as the owner of the state directory, where root looks at another's, if there is one.

    Raises ConfigurationError.
    """
    try:
        owner = state_dir.stat().st_uid
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(
            f"cannot look at {state_dir}: {error.strerror}; run it with sudo, or as the daemon's "
            "user"
        ) from None
    if os.geteuid() != 0 or owner == 0:
        return
    try:
        account = pwd.getpwuid(owner)
    except KeyError:
        raise ConfigurationError(
            f"{state_dir} belongs to user {owner}, whom this host does not have any more"
        ) from None
    os.setgroups(groups_of(account))
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(owner, owner, owner)
