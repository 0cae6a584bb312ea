"""The policy of this host: what may be started here and typed here, whatever a server says.

Its files are the operator's, and no program of a session may be able to edit them. Every file that is in force has to agree, and so has
the list of the project that comes with a start. No file and no list: anything is allowed.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TypeVar

import msgspec

from controller_client.child_environment import search_path
from controller_client.command_policy.allowlist import Allowlist, CommandNotAllowed, plain
from controller_client.command_policy.programs import can_spawn, is_shell
from controller_client.command_policy.shell_grammar import CommandPlan, Pipeline, Words, quoted
from controller_client.command_policy.typed_lines import check_input, check_script, is_builtin_like_program
from controller_client.policy_file import PolicyFile
from controller_client.program_files import is_same_program, real_file
from controller_client.protocol.limits import MAX_RING_BYTES, MAX_TERMINAL_SIZE
from controller_client.protocol.messages import Admission, Failure, ProjectRules, RunCommand, SendInput, StartInteractiveCmd
from controller_client.resource_limits import lowest
from controller_client.start_failure import StartFailed

Start = TypeVar("Start", bound=StartInteractiveCmd | RunCommand)

RUNNER = "/bin/bash"
"""Runs the plan of a line that is more than one command; every word of it is quoted, every program its real path."""

# With an allowlist in force a caller may set these and no others: any other may change what a listed program does.
_HARMLESS = "LANG LANGUAGE LC_CTYPE LC_MESSAGES LC_TIME LC_NUMERIC LC_COLLATE TZ TERM COLORTERM COLUMNS LINES NO_COLOR CI"
_HARMLESS_VARIABLES = frozenset(_HARMLESS.split())
# A path in one of them would have programs read a catalogue of messages, a terminal's or a time zone's description that a caller wrote.
_HARMLESS_VALUE = re.compile(r"[\w.@:+,=-]*", re.ASCII)
_TIME_ZONE = re.compile(r"(?!:?/)(?!.*\.\.)[\w.:+,</>-]*", re.ASCII)
_STOPPED = Failure(code="HOST_STOPPED", message="the operator of this host has stopped it: nothing is started or typed here")
_HIDDEN = "this input is not an allowed command line, and a shell may read it; start the program that asks for a secret by itself"


class HostPolicy:
    """Decides for the daemon; ``admit`` for a start, ``judge`` for an input."""

    def __init__(self, files: Sequence[PolicyFile] = (), stops: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._stops = tuple(stops)

    @property
    def stopped(self) -> Failure | None:
        """Set while the operator of this host lets nothing be started or typed: there is one of the files ``stops``."""
        return _STOPPED if any(map(os.path.lexists, self._stops)) else None

    def admit(self, start: Start) -> Start:
        """The start as its holder does it. Raises StartFailed with the code of whatever forbids it."""
        if (failure := self.stopped) is not None:
            raise StartFailed(failure.code, failure.message)
        _check_size(start)
        keeps_user = any(file.keeps_user for file in self._files)
        start = msgspec.structs.replace(start, limits=reduce(lowest, (file.limits for file in self._files), start.limits))
        roots = [list(roots) for roots in (*(file.directories for file in self._files), start.rules.directories) if roots is not None]
        try:
            programs = self._programs(start.rules)
            if programs is None:
                return msgspec.structs.replace(start, admission=Admission(roots=roots, keeps_user=keeps_user))
            _check_environment(start.env)
            argv, program, takes_lines = programs.resolve(_plan_of(start))
            if takes_lines:
                check_script(_input_of(start), programs.check_typed)
        except CommandNotAllowed as error:
            raise StartFailed(error.code, str(error)) from None
        admission = Admission(program=program, roots=roots, takes_lines=takes_lines, keeps_user=keeps_user)
        return msgspec.structs.replace(start, command=None, argv=argv, admission=admission)

    def judge(self, command: SendInput, rules: ProjectRules, *, is_hidden: bool) -> SendInput:
        """An input for a shell, as its holder is to take it: with the refusal if it is not allowed.

        ``is_hidden``: the terminal asks for a secret, so the refusal does not quote the input.
        """
        try:
            programs = self._programs(rules)
            if programs is None:
                return msgspec.structs.replace(command, refused=None, is_line_checked=False)
            check_input(command.data + (command.secret or b""), command.keys, programs.check_typed)
        except CommandNotAllowed as error:
            text = _HIDDEN if is_hidden or command.secret is not None else str(error)
            return msgspec.structs.replace(command, refused=Failure(code=error.code, message=text))
        return msgspec.structs.replace(command, refused=None, is_line_checked=True)

    def _programs(self, rules: ProjectRules) -> "_Programs | None":
        """The programs that may run under all lists in force; None if there is no list."""
        try:
            lists = [*(file.allowlist for file in self._files), Allowlist.parse(rules.commands)]
        except ValueError as error:
            raise CommandNotAllowed("the project's list of commands", str(error)) from None
        in_force = [allowlist for allowlist in lists if not allowlist.is_open]
        if not in_force:
            return None
        denied = frozenset[str]().union(*(file.denied for file in self._files))
        path = next((file.search_path for file in self._files if file.search_path), search_path())
        return _Programs(tuple(in_force), denied, path)


@dataclass(frozen=True)
class _Programs:
    """Allowlists that have to agree, and what none of them can allow."""

    allowlists: tuple[Allowlist, ...]
    denied: frozenset[str]
    search_path: str

    def resolve(self, plan: CommandPlan) -> tuple[list[str], str, bool]:
        """(argv, the file to execute, whether it is a shell that is to be typed into). Raises CommandNotAllowed or StartFailed."""
        files = {words[0]: self.file_of(words[0]) for words in plan.commands()}
        takes_lines = any(is_shell(name) or is_shell(file) for name, file in files.items())
        if plan.single is not None:
            return list(plan.single), files[plan.single[0]], takes_lines
        script = plan.script(lambda words: _as_shell_text(words, files[words[0]]))
        return [RUNNER, "--noprofile", "--norc", "-c", script], RUNNER, takes_lines

    def file_of(self, name: str) -> str:
        """The file that a program's name means here. Raises CommandNotAllowed or StartFailed."""
        self._check_denied(name, name)
        for allowlist in self.allowlists:
            allowlist.check_program(name)
        file = real_file(name, self.search_path, lambda real: all(allowlist.lists(real) for allowlist in self.allowlists))
        if can_spawn(file) and not all(allowlist.is_marked(name) for allowlist in self.allowlists):
            raise CommandNotAllowed(name, f"on this host it is {file!a}, which can run other programs, so the list has to say {name}:shell")
        self._check_denied(name, file)
        return file

    def check_typed(self, name: str) -> None:
        """A program of a line that is typed into a shell. Raises CommandNotAllowed."""
        if is_builtin_like_program(name) and name not in self.denied and all(allowlist.lists(name) for allowlist in self.allowlists):
            return
        try:
            self.file_of(name)
        except StartFailed:
            raise CommandNotAllowed(name, "this host has no such program on its fixed path") from None

    def _check_denied(self, name: str, file: str) -> None:
        if file in self.denied or any(is_same_program(entry, file) for entry in self.denied if "/" not in entry):
            raise CommandNotAllowed(name, "this host denies it")


def _plan_of(start: StartInteractiveCmd | RunCommand) -> CommandPlan:
    if start.argv and start.argv[0]:
        return CommandPlan((Pipeline("", (tuple(start.argv),)),))
    return plain(start.command or "")


def _input_of(start: StartInteractiveCmd | RunCommand) -> bytes:
    return start.input if isinstance(start, RunCommand) else start.stdin_data


def _check_size(start: StartInteractiveCmd | RunCommand) -> None:
    """A holder that died of its numbers, or kept more than there is memory for, would be a server's doing."""
    sizes = (start.rows, start.cols) if isinstance(start, StartInteractiveCmd) else ()
    if not (1 <= start.ring_bytes <= MAX_RING_BYTES and all(1 <= size <= MAX_TERMINAL_SIZE for size in sizes)):
        raise StartFailed("START_FAILED", "the terminal or what is to be kept of the output is not of a possible size")


def _check_environment(additions: dict[str, str]) -> None:
    for name, value in additions.items():
        if name not in _HARMLESS_VARIABLES:
            raise StartFailed(
                "ENV_NOT_ALLOWED", f"while a list of commands is in force, {name[:64]!a} may not be set: it may change what they do"
            )
        if not (_TIME_ZONE if name == "TZ" else _HARMLESS_VALUE).fullmatch(value):
            raise StartFailed("ENV_NOT_ALLOWED", f"while a list of commands is in force, {name} may not be set to something like a path")


def _as_shell_text(words: Words, file: str) -> str:
    if is_same_program(words[0], file):
        return quoted((file, *words[1:]))
    # A file that is many programs, such as busybox, goes by the name it is called.
    return f"( exec -a {quoted((words[0], file, *words[1:]))} )"
