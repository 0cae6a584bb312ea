"""A session's directory on the host: ``<state-dir>/sessions/<session_id>/``, 0700, the guard that a program is spawned at most once.

==============  =====================================================================================
``start.json``  the START frame
``holder.lock`` locked (flock) by the holder for as long as it lives; so the lock tells whether it does
``holder.sock`` where the holder listens
``pid``         the program's process id
``done.json``   the DONE frame, once the program ended (or the daemon found that its holder died)
``holder.log``  the traceback of a holder that failed
==============  =====================================================================================

Files are 0600. A path of a unix socket is limited to about 100 bytes, so the holder binds it by its name alone, and a daemon
connects through a descriptor of the directory where the system allows that.
"""

import fcntl
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from controller_client.one_shot import StartCommand
from controller_client.protocol.codec import decode_from_holder, decode_from_server, encode
from controller_client.protocol.errors import BadFrame
from controller_client.protocol.messages import InteractiveCmdDone

SOCKET_NAME = "holder.sock"
LOG_NAME = "holder.log"
_LOCK_NAME = "holder.lock"
_START_NAME = "start.json"
_DONE_NAME = "done.json"
_PID_NAME = "pid"
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class SessionDirectory:
    """One session's files. Nothing is created or opened until it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def session_id(self) -> str:
        """The directory is named after its session."""
        return self.path.name

    def read_start(self) -> StartCommand | None:
        """The START this directory was made for; None if it was never completely written."""
        try:
            message = decode_from_server.decode((self.path / _START_NAME).read_bytes())
        except (OSError, BadFrame):
            return None
        return message if isinstance(message, StartCommand) else None

    def read_done(self) -> InteractiveCmdDone | None:
        """How the program ended; None if it did not, or nobody lived to tell."""
        try:
            message = decode_from_holder.decode((self.path / _DONE_NAME).read_bytes())
        except (OSError, BadFrame):
            return None
        return message if isinstance(message, InteractiveCmdDone) else None

    def write_done(self, done: InteractiveCmdDone) -> None:
        """Record the end so that it survives holder and host. Raises OSError."""
        self._write(_DONE_NAME, encode(done), durable=True)

    def write_pid(self, pid: int) -> None:
        """Record the program's process id. Raises OSError."""
        self._write(_PID_NAME, b"%d\n" % pid, durable=False)

    def read_pid(self) -> int | None:
        """The program's process id, if it was ever started."""
        with suppress(OSError, ValueError):
            return int((self.path / _PID_NAME).read_text())
        return None

    def lock(self) -> int | None:
        """Become the holder: the descriptor to keep open for life, or None if there is one, or the directory is gone."""
        try:
            descriptor = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def is_holder_alive(self) -> bool:
        """Whether some process holds the lock."""
        descriptor = self.lock()
        if descriptor is None:
            return self.path.is_dir()
        os.close(descriptor)
        return False

    def declare_lost(self, done: InteractiveCmdDone) -> bool:
        """Record that the session died with its holder; False if a holder lives after all.

        Under the lock, so that a holder which is only just starting finds the record and does not start the program.
        """
        descriptor = self.lock()
        if descriptor is None:
            return False
        try:
            self.write_done(done)
        finally:
            os.close(descriptor)
        return True

    def remove(self) -> None:
        """Forget the session; fine if it is forgotten already."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def socket_address(self) -> Iterator[str]:
        """An address of the holder's socket that is short enough whatever the state directory is called."""
        if not sys.platform.startswith("linux"):
            yield str(self.path / SOCKET_NAME)
            return
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
        finally:
            os.close(descriptor)

    def connect(self) -> socket.socket:
        """A non-blocking socket connected to the holder. Raises OSError if nobody listens."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            with self.socket_address() as address:
                connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _write(self, name: str, content: bytes, *, durable: bool) -> None:
        """All of it or nothing, under its final name."""
        temporary = self.path / f"{name}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(descriptor)
        temporary.rename(self.path / name)
        if durable:
            _sync_directory(self.path)


def directory_of(state_dir: Path, session_id: str) -> SessionDirectory:
    """The directory of a session, there or not. Raises ValueError for an id that is no plain name."""
    if not _SESSION_ID.fullmatch(session_id):
        raise ValueError("a session id consists of letters, digits and dashes")
    return SessionDirectory(state_dir / "sessions" / session_id)


def create(state_dir: Path, start: StartCommand) -> bool:
    """Make the directory of a new session; False if it is there, which means that the program must not be spawned again.

    Raises ValueError for a bad session id and OSError (disk full) after taking the directory back.
    """
    directory = directory_of(state_dir, start.session_id)
    directory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        directory.path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    try:
        directory._write(_START_NAME, encode(start), durable=False)  # noqa: SLF001 (its own module)
    except OSError:
        directory.remove()
        raise
    return True


def all_sessions(state_dir: Path) -> list[SessionDirectory]:
    """Every session this host remembers, by name."""
    try:
        entries = sorted((state_dir / "sessions").iterdir())
    except FileNotFoundError:
        return []
    return [SessionDirectory(entry) for entry in entries if _SESSION_ID.fullmatch(entry.name) and entry.is_dir()]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
