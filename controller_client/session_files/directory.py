"""The directory of a session on its host: ``<state-dir>/sessions/<session_id>/``, mode 0700.

The directory guards that a program is spawned at most once. Its files have mode 0600:

* ``start.json``: the START frame.
* ``holder.lock``: locked (flock) by the holder for as long as it lives, so the lock says whether
  the holder lives; holds the process id of the holder.
* ``holder.sock``: the unix socket of the holder.
* ``pid``: the process id of the program.
* ``record.json``: the last record that the holder wrote of its processes and of itself.
* ``overdue``: why the daemon kills the program, if its holder does not end it in time.
* ``shell``: there once the session's terminal was seen at a shell's prompt.
* ``done.json``: the DONE frame, once the program ended or the daemon found its holder dead.
* ``holder.log``: the traceback of a holder that failed.

The path of a unix socket is limited to about 100 bytes. So the holder binds the socket by its name
alone, and a daemon connects through a descriptor of the directory where the system allows that.
"""

import errno
import fcntl
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from controller_client.protocol.codec import Decoder, encode
from controller_client.protocol.errors import FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import CommandResult, InteractiveCmdDone
from controller_client.session_files.one_shot import StartCommand
from controller_client.system.absence import is_absent, is_there, raise_unknown
from controller_client.system.files.plain_file import create_plain, decoded, read_plain
from controller_client.system.files.tree import remove_tree
from controller_client.system.users.two_users import as_owner

SOCKET_NAME = "holder.sock"
LOG_NAME = "holder.log"
LOCK_NAME = "holder.lock"
_START_NAME = "start.json"
_DONE_NAME = "done.json"
_OVERDUE_NAME = "overdue"
_PID_NAME = "pid"
_RECORD_NAME = "record.json"
_SHELL_NAME = "shell"
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_START: Decoder[StartCommand] = Decoder(StartCommand)
_DONE: Decoder[InteractiveCmdDone] = Decoder(InteractiveCmdDone | CommandResult)
_Kind = TypeVar("_Kind")

Pid = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""A number that names a process: asked for any other, the kernel answers as in a shortage."""
_Ticks = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Members = Annotated[list[tuple[Pid, _Ticks]], msgspec.Meta(max_length=4096)]
_PID: msgspec.json.Decoder[int] = msgspec.json.Decoder(Pid)
OverdueReason = Literal["terminated", "timed_out"]
"""Why a session had to end: a TERMINATE_CMD asked for that, or its lifetime ran out."""
_OVERDUE_REASONS: dict[bytes, OverdueReason] = {
    b"terminated": "terminated",
    b"timed_out": "timed_out",
}


class HolderRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A holder's record of its processes, and of the memory and descriptors that it uses itself.

    ``members`` are pairs of pid and start time (clock ticks since the boot ``boot_id``).
    ``ends_at`` (of ``lifetime_clock``) is the latest end of the session's lifetime. None: there is
    no limit, or the holder is older than this field.
    """

    boot_id: str
    members: _Members
    ends_at: float | None = None
    memory_bytes: int = 0
    descriptors: int = 0


_RECORD: msgspec.json.Decoder[HolderRecord] = msgspec.json.Decoder(HolderRecord)


_MOST_DONE_BYTES: Final = MAX_FRAME_BYTES // 2


class SessionDirectory:
    """The files of one session. Nothing is created or opened until a method needs it.

    What is read may be a program's work: content that means nothing reads as None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def session_id(self) -> str:
        """The id of the session, which is the name of the directory."""
        return self.path.name

    def read_start(self) -> StartCommand | None:
        """Return the START of this session; None if it was never completely written.

        Raises OSError if it cannot be read now.
        """
        start = self._message(_START_NAME, _START)
        return start if start is not None and start.session_id == self.session_id else None

    def read_done(self) -> InteractiveCmdDone | None:
        """Return the end of the program; None if it runs, or no process recorded its end.

        Raises OSError if it cannot be read now.
        """
        done = self._message(_DONE_NAME, _DONE)
        return done if done is not None and self._can_be_end(done) else None

    def _can_be_end(self, done: InteractiveCmdDone) -> bool:
        """Return whether a holder can have recorded that end.

        A program can write the end of another session, or one that leaves a frame no room for what
        a daemon adds.
        """
        try:
            is_short = len(encode(done)) <= _MOST_DONE_BYTES
        except FrameTooLarge:
            is_short = False
        return is_short and done.session_id == self.session_id

    def write_start(self, start: StartCommand) -> None:
        """Record the START of the session. Raises OSError."""
        self._put(_START_NAME, encode(start))

    def write_done(self, done: InteractiveCmdDone) -> None:
        """Record the end so that it survives holder and host. Raises OSError."""
        self._write(_DONE_NAME, encode(done), durable=True)

    def write_overdue(self, reason: OverdueReason) -> None:
        """Record why the daemon kills the program in place of its holder. Raises OSError."""
        self._write(_OVERDUE_NAME, reason.encode(), durable=False)

    def read_overdue(self) -> OverdueReason | None:
        """Return why the daemon killed the program; None if it did not, or that cannot be read."""
        with as_owner(), suppress(OSError):
            return self._decoded(_OVERDUE_NAME, _OVERDUE_REASONS.get)
        return None

    def note_shell(self) -> None:
        """Record that the terminal was seen at a shell's prompt. Raises OSError."""
        self._write(_SHELL_NAME, b"", durable=False)

    def was_shell(self) -> bool:
        """Return whether the terminal was seen at a shell's prompt.

        Raises OSError if that cannot be told now.
        """
        return is_there(self.path / _SHELL_NAME)

    def write_pid(self, pid: int) -> None:
        """Record the program's process id. Raises OSError."""
        self._put(_PID_NAME, b"%d\n" % pid)

    def read_pid(self) -> int | None:
        """Return the process id of the program; None if it was never started.

        Raises OSError if the file cannot be read now.
        """
        return self._decoded(_PID_NAME, _number)

    def write_record(self, record: HolderRecord) -> None:
        """Replace the record of the holder. Raises OSError."""
        self._write(_RECORD_NAME, msgspec.json.encode(record), durable=False)

    def read_record(self) -> HolderRecord | None:
        """Return the last record of the holder; None if there is none.

        Raises OSError if the file cannot be read now.
        """
        return self._decoded(_RECORD_NAME, _RECORD.decode)

    def sign(self, lock: int) -> None:
        """Write our process id into the lock, which this process holds. Raises OSError."""
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)

    def read_holder(self) -> int | None:
        """Return the process id of the holder, dead or alive; None if it never signed the lock.

        Raises OSError if the file cannot be read now.
        """
        return self._decoded(LOCK_NAME, _number)

    def lock(self) -> int | None:
        """Become the holder, and return a descriptor to keep open for as long as the holder lives.

        Returns None if there is a holder, or the directory is gone. Raises OSError if that cannot
        be found out: not now, or never if a program has spoiled the lock (``raise_unknown``).
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self.path / LOCK_NAME, flags, 0o600)
        except BlockingIOError:
            # Only a lease of another process (F_SETLEASE) makes an open wait.
            raise PermissionError(errno.EACCES, "the lock is leased", str(self.path)) from None
        except OSError as error:
            if is_absent(error):
                return None
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return descriptor

    def is_holder_alive(self) -> bool:
        """Return whether some process holds the lock."""
        descriptor = self.lock()
        if descriptor is None:
            return self.path.is_dir()
        os.close(descriptor)
        return False

    def remove(self) -> None:
        """Delete the directory with its files, if it is there, or what is in its place."""
        with as_owner(), suppress(OSError):
            try:
                remove_tree(self.path)
            except NotADirectoryError:
                self.path.unlink()

    @contextmanager
    def socket_address(self) -> Iterator[str]:
        """Yield an address of the holder's socket that is short, however long the path is."""
        if not sys.platform.startswith("linux"):
            yield str(self.path / SOCKET_NAME)
            return
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
        finally:
            os.close(descriptor)

    def connect(self) -> socket.socket:
        """Return a non-blocking socket to the holder. Raises OSError if nobody listens."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            with self.socket_address() as address:
                connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _message(self, name: str, decoder: Decoder[_Kind]) -> _Kind | None:
        return self._decoded(name, decoder.decode)

    def _decoded(self, name: str, decode: Callable[[bytes], _Kind | None]) -> _Kind | None:
        """Return what a file says; None if it is not there or says nothing. Raises OSError."""
        try:
            return decoded(read_plain(self.path / name), decode)
        except OSError as error:
            # A program may have put something else there, or closed the file to its own user.
            raise_unknown(error)
            return None

    def _put(self, name: str, content: bytes) -> None:
        """Write a file that is written once, and of which a reader knows a part from the whole."""
        with as_owner(), os.fdopen(create_plain(self.path / name), "wb") as file:
            file.write(content)

    def _write(self, name: str, content: bytes, *, durable: bool) -> None:
        """Write all of ``content`` under its final name, or nothing."""
        with as_owner():
            self._replace(name, content, durable=durable)

    def _replace(self, name: str, content: bytes, *, durable: bool) -> None:
        temporary = self.path / f"{name}.new"
        descriptor = create_plain(temporary)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(descriptor)
        temporary.rename(self.path / name)
        if durable:
            sync_directory(self.path)


def directory_of(state_dir: Path, session_id: str) -> SessionDirectory:
    """Return the directory of a session, whether it exists or not.

    Raises ValueError for an id that is no plain name.
    """
    if not _SESSION_ID.fullmatch(session_id):
        raise ValueError("a session id consists of letters, digits and dashes")
    return SessionDirectory(state_dir / "sessions" / session_id)


def create(state_dir: Path, start: StartCommand) -> bool:
    """Make the directory of a new session, or return False if it exists.

    If it exists, the program must not be spawned again. Raises ValueError for a bad session id, and
    OSError (disk full) after the directory is removed again.
    """
    directory = directory_of(state_dir, start.session_id)
    try:
        directory.path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:  # the first session of this host
        directory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return create(state_dir, start)
    try:
        directory.write_start(start)
    except OSError:
        directory.remove()
        raise
    return True


def all_sessions(state_dir: Path) -> list[SessionDirectory]:
    """Return every session of this host, by name. Raises OSError if they cannot be listed now."""
    try:
        entries = sorted((state_dir / "sessions").iterdir())
    except FileNotFoundError:
        return []
    return [
        SessionDirectory(entry)
        for entry in entries
        if _SESSION_ID.fullmatch(entry.name) and entry.is_dir()
    ]


def is_current_removed() -> bool:
    """Return whether the current directory, a holder's own, was removed from under it."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _number(content: bytes) -> int | None:
    # A file that was not completely written counts as one that is not there.
    return _PID.decode(content) if content.endswith(b"\n") else None


def sync_directory(path: Path) -> None:
    """Have the names in a directory on the disk before going on. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
