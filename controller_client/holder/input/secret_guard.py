"""Decides whether a stored secret may be typed into a session now: who would read it?

The question is asked right before every write of the secret, and never answered from what was
reported before. What a program's output says never counts here.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from controller_client.holder.input.keys import InputRefused
from controller_client.program.process import Process
from controller_client.program.started_program import (
    FileIdentity,
    StartedProgram,
    effective_user,
    identity_of_file,
    status_number,
)
from controller_client.protocol.messages import SendInput
from controller_client.system.files.loaded_code import has_code_of_others
from controller_client.terminal_state import TerminalWatcher, pipe_holders

_NOT_ASKING: Final = "nobody is proven to read a line here that the terminal does not show"
_NOBODY: Final = "nobody is proven to wait for input here"
_NOT_THE_LEADER: Final = (
    "what reads is not, or not only, the program that the session was started with"
)
_SHARED: Final = "another process has the terminal too and may read it"
_OTHER_FILE: Final = (
    "the session was not started from the file of a program that the secret is for, or runs "
    "another one by now"
)
_UNKNOWN_FILE: Final = "which file the program runs cannot be proven on this host"
_OTHERS_CODE: Final = "the program has loaded code that others than root can change"
_UNSEEN: Final = "the host cannot look now who reads here; nothing was typed"
_TRACED: Final = "another process traces the program and could see what it reads"


class SecretGuard:
    """Guards the input of one program; ``watcher`` is None if the program runs on pipes."""

    def __init__(
        self, process: Process, program: StartedProgram, watcher: TerminalWatcher | None
    ) -> None:
        self._process = process
        self._program = program
        self._watcher = watcher

    def observe(self) -> None:
        """Renew the proof of the program's file while that is possible."""
        # What is not renewed now is not proven later.
        with suppress(OSError):
            self._program.observe(self._process.pid)

    def close(self) -> None:
        """Let go of the proof: the session is over."""
        self._program.close()

    def check(self, command: SendInput) -> None:
        """Raise InputRefused unless the secret of ``command`` may be typed at this moment."""
        if command.may_echo and not command.secret_programs:
            # Only servers from before secrets had programs send this.
            return
        try:
            if self._watcher is not None:
                self._check_terminal(command, self._watcher)
            elif command.may_echo:
                self._check_pipe(command)
            else:
                raise InputRefused("NOT_ASKING_FOR_SECRET", _NOT_ASKING)
        except OSError:
            raise InputRefused("READER_NOT_PROVEN", _UNSEEN) from None

    def _check_pipe(self, command: SendInput) -> None:
        process = self._process
        self._check_program(command.secret_files)
        if pipe_holders(process.input_fd, process.pid) - {process.pid}:
            raise InputRefused("READER_NOT_PROVEN", _SHARED)

    def _check_terminal(self, command: SendInput, watcher: TerminalWatcher) -> None:
        pid = self._process.pid
        reader = watcher.reader()
        if not command.may_echo and (reader is None or not reader.is_hidden):
            raise InputRefused("NOT_ASKING_FOR_SECRET", _NOT_ASKING)
        if not command.secret_programs:
            return
        if reader is None:
            raise InputRefused("READER_NOT_PROVEN", _NOBODY)
        if not reader.is_only(pid):
            raise InputRefused(
                "READER_NOT_PROVEN" if 0 in reader.pids else "SECRET_NOT_FOR_READER",
                _NOT_THE_LEADER,
            )
        self._check_program(command.secret_files)
        # A process of the same user can hide what it has open. The terminals of programs of root
        # are therefore closed from the start.
        is_reachable = self._program.image is not None and not self._process.is_out_of_reach()
        if is_reachable or watcher.is_read_by_others(pid):
            raise InputRefused("READER_NOT_PROVEN", _SHARED)

    def _check_program(self, files: Iterable[str]) -> None:
        pid = self._process.pid
        if self._program.file not in _identities(files):
            raise InputRefused("SECRET_NOT_FOR_READER", _OTHER_FILE)
        runs_it = self._program.is_run_by(pid)
        if runs_it is None:
            raise InputRefused("READER_NOT_PROVEN", _UNKNOWN_FILE)
        if not runs_it:
            raise InputRefused("SECRET_NOT_FOR_READER", _OTHER_FILE)
        is_loaded = has_code_of_others(pid)
        # The kernel does not tell for a set-uid program of root. Such a program loads nothing that
        # other users name.
        if is_loaded or (is_loaded is None and effective_user(pid) != 0):
            raise InputRefused("SECRET_NOT_FOR_READER", _OTHERS_CODE)
        if status_number(pid, "TracerPid") != 0:
            raise InputRefused("READER_NOT_PROVEN", _TRACED)


def _identities(files: Iterable[str]) -> set[FileIdentity]:
    found = set()
    for file in files:
        with suppress(OSError):
            found.add(identity_of_file(file))
    return found
