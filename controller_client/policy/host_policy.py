"""The policy of this host decides what may be started and typed here, whatever a server says.

Its files are the operator's, and no program of a session may be able to edit them. Every file that
is in force has to agree, and so has the project's list that comes with a start. Without a file and
without a list anything is allowed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import ENOENT
from functools import reduce
from typing import TypeVar

import msgspec

from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.programs import can_spawn, is_shell
from controller_client.command_policy.shell_grammar import (
    CommandNotAllowed,
    CommandPlan,
    Pipeline,
    Words,
    parse_plan,
    quoted,
)
from controller_client.command_policy.typed_lines import (
    check_input,
    check_script,
    is_builtin_like_program,
)
from controller_client.policy.file import PolicyFile, user_of_programs
from controller_client.policy.kill_switch import KillSwitch
from controller_client.policy.named_files import Surroundings, named_files, why_changed
from controller_client.policy.program_files import (
    guarded_file,
    is_machine_code,
    is_same_program,
    means,
    real_file,
)
from controller_client.policy.terminfo import DIRECTORIES as TERMINFO_DIRECTORIES
from controller_client.policy.terminfo import system_directory
from controller_client.program.child_environment import (
    Account,
    account_of,
    default_terminal,
    own_account,
    search_path,
)
from controller_client.protocol.keys import canonical_key
from controller_client.protocol.limits import MAX_RING_BYTES, MAX_TERMINAL_SIZE
from controller_client.protocol.messages import (
    Admission,
    Failure,
    NamedFile,
    ProjectRules,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.session_files.one_shot import as_start
from controller_client.system.resource_limits import lowest
from controller_client.system.start_failure import StartFailed
from controller_client.system.users.two_users import ProgramUser

Start = TypeVar("Start", bound=StartInteractiveCmd | RunCommand)

# The shell that runs a line of more than one command, as quoted words and real paths.
RUNNER = "/bin/bash"

# With an allowlist in force a caller may set these variables and no others. Any other may change
# what a listed program does.
_HARMLESS = (
    "LANG LANGUAGE LC_CTYPE LC_MESSAGES LC_TIME LC_NUMERIC LC_COLLATE TZ TERM COLORTERM "
    "COLUMNS LINES NO_COLOR CI"
)
_HARMLESS_VARIABLES = frozenset(_HARMLESS.split())
# A path in one of them would make programs read a file that a caller wrote: a catalogue of
# messages, or the description of a terminal or a time zone.
_HARMLESS_VALUE = re.compile(r"[\w.@:+,=-]*", re.ASCII)
_TIME_ZONE = re.compile(r"(?!:?/)(?!.*\.\.)[\w.:+,</>-]*", re.ASCII)
_TERMINFO = "TERMINFO"
_STOPPED = Failure(
    code="HOST_STOPPED",
    message="the operator of this host has stopped it: nothing is started or typed here",
)
_DENIED = "this host denies it"
_HIDDEN = (
    "this input is not an allowed command line, and a shell may read it; start the program "
    "that asks for a secret by itself"
)


class HostPolicy:
    """The decisions of the host: ``admit`` about a start, ``judge`` about an input.

    ``run_as`` is the user of programs, if it is not the daemon's.
    """

    def __init__(self, files: Sequence[PolicyFile] = (), switch: KillSwitch | None = None) -> None:
        self._files = tuple(files)
        self._switch = switch or KillSwitch()
        self.run_as = user_of_programs(self._files)

    @property
    def stopped(self) -> Failure | None:
        """The refusal of every start and input while the kill switch is on, else None."""
        return _STOPPED if self._switch.is_on else None

    @property
    def digest(self) -> str:
        """The digests of the policy files in force, to compare hosts by; empty without a file."""
        return " ".join(file.digest for file in self._files)

    def admit(self, start: Start) -> Start:
        """Return the start as its holder has to do it.

        Raises StartFailed with the code of the rule that forbids the start.
        """
        if (failure := self.stopped) is not None:
            raise StartFailed(failure.code, failure.message)
        _check_start(start)
        admission = Admission(
            keeps_user=any(file.keeps_user for file in self._files), run_as=self.run_as
        )
        start = msgspec.structs.replace(
            start, limits=reduce(lowest, (file.limits for file in self._files), start.limits)
        )
        roots = [
            list(roots)
            for roots in (*(file.directories for file in self._files), start.rules.directories)
            if roots is not None
        ]
        admission = msgspec.structs.replace(admission, roots=roots)
        try:
            programs = self._programs(start.rules)
            if programs is None:
                return msgspec.structs.replace(start, admission=admission)
            _check_environment(start.env)
            start = msgspec.structs.replace(
                start, env={**start.env, **_terminal_description(start)}
            )
            argv, program, takes_lines = programs.resolve(_plan_of(start))
            if takes_lines:
                first = as_start(start)
                if first.stdin == "closed":
                    check_script(first.stdin_data, programs.check_typed)
                else:
                    # Later inputs would go on in an unfinished line.
                    check_input(first.stdin_data, (), programs.check_typed)
        except CommandNotAllowed as error:
            raise StartFailed(error.code, str(error)) from None
        admission = msgspec.structs.replace(admission, program=program, takes_lines=takes_lines)
        return msgspec.structs.replace(start, command=None, argv=argv, admission=admission)

    def judge(self, command: SendInput, rules: ProjectRules, *, is_hidden: bool) -> SendInput:
        """Return an input for a shell, with the refusal in it if it is not allowed.

        ``is_hidden``: the terminal asks for a secret, so the refusal does not quote the input.
        """
        try:
            programs = self._programs(rules)
            if programs is None:
                return msgspec.structs.replace(command, refused=None, is_line_checked=False)
            keys = [canonical_key(key) for key in command.keys]
            check_input(command.data + (command.secret or b""), keys, programs.check_typed)
        except CommandNotAllowed as error:
            text = _HIDDEN if is_hidden or command.secret is not None else str(error)
            return msgspec.structs.replace(command, refused=Failure(code=error.code, message=text))
        return msgspec.structs.replace(command, refused=None, is_line_checked=True)

    def judge_secret(
        self, command: SendInput, start: StartInteractiveCmd | RunCommand | None
    ) -> SendInput:
        """Return an input with a secret, with the real files of the programs it is meant for.

        The refusal is in it if the secret may not be typed. ``start`` is the session's, or None if
        it is not known any more.
        """
        if not command.secret_programs:
            return msgspec.structs.replace(command, secret_files=[])
        files: list[str] = []
        refused = _unproven(start)
        if refused is not None:
            return msgspec.structs.replace(command, refused=refused, secret_files=files)
        reason = ""
        for name in command.secret_programs:
            try:
                files.append(guarded_file(name, self._search_path))
            except (CommandNotAllowed, StartFailed, OSError) as error:
                reason = str(error)
        if not files:
            refused = Failure(
                code="SECRET_NOT_FOR_READER",
                message=f"no program of the secret can be proven here: {reason}",
            )
        return msgspec.structs.replace(
            command, refused=command.refused or refused, secret_files=files
        )

    def named_files(self, command: str, cwd: str | None) -> list[NamedFile]:
        """Return the files that a line names here. Raises OSError if nobody could look."""
        return named_files(command, cwd, self._surroundings())

    def why_changed(
        self,
        command: str,
        place: tuple[str | None, Mapping[str, str]],
        approved: Sequence[NamedFile],
    ) -> Failure | None:
        """Return the refusal of a start whose files are not those that were approved, else None.

        Raises OSError if nobody could look.
        """
        return why_changed(command, place, approved, self._surroundings())

    def _surroundings(self) -> Surroundings:
        # A listed program is looked up on the policy's path, and what it starts on the fixed one.
        paths = tuple(dict.fromkeys((self._search_path, search_path())))
        roots = [file.directories for file in self._files if file.directories is not None]
        return Surroundings(_account_of(self.run_as).home, paths, roots)

    @property
    def _search_path(self) -> str:
        return next((file.search_path for file in self._files if file.search_path), search_path())

    def _programs(self, rules: ProjectRules) -> "_Programs | None":
        """Return the programs that all lists in force allow; None if there is no list."""
        try:
            lists = [*(file.allowlist for file in self._files), Allowlist.parse(rules.commands)]
        except ValueError as error:
            raise CommandNotAllowed("the project's list of commands", str(error)) from None
        allowlist = Allowlist.agreed(lists)
        if allowlist.is_open:
            return None
        denied = frozenset[str]().union(*(file.denied for file in self._files))
        return _Programs(allowlist, denied, self._search_path)


@dataclass(frozen=True)
class _Programs:
    """The programs that every list in force allows, without those that the host denies."""

    allowlist: Allowlist
    denied: frozenset[str]
    search_path: str

    def resolve(self, plan: CommandPlan) -> tuple[list[str], str, bool]:
        """Return argv, the file to execute, and whether it is a shell that takes command lines.

        Raises CommandNotAllowed or StartFailed.
        """
        files = {words[0]: self.file_of(words[0]) for words in plan.commands()}
        takes_lines = any(is_shell(name) or is_shell(file) for name, file in files.items())
        if plan.single is not None:
            return list(plan.single), files[plan.single[0]], takes_lines
        script = plan.script(lambda words: _as_shell_text(words, files[words[0]]))
        return [RUNNER, "--noprofile", "--norc", "-c", script], RUNNER, takes_lines

    def file_of(self, name: str) -> str:
        """Find the file that a program's name means on this host, if it may run.

        Raises CommandNotAllowed or StartFailed.
        """
        self._check_denied(name, name)
        self.allowlist.check_program(name)
        file = real_file(name, self.search_path, self.allowlist.lists)
        is_marked = self.allowlist.is_marked(name)
        if can_spawn(file) and not is_marked:
            raise CommandNotAllowed(
                name,
                f"on this host it is {file!a}, which can run other programs, so the list has to "
                f"say {name}:shell",
            )
        # An operator who lists a path has looked at that very file.
        is_own_file = "/" in name or self.allowlist.lists(file)
        if not (is_own_file or is_marked or is_machine_code(file)):
            raise CommandNotAllowed(
                name,
                f"on this host {file!a} is a script, which its interpreter runs, so the list has "
                f"to say {name}:shell, or its full path",
            )
        self._check_denied(name, file)
        return file

    def check_typed(self, name: str) -> None:
        """Check a program of a line that is typed into a shell. Raises CommandNotAllowed."""
        if is_builtin_like_program(name):
            # A shell's own one does what the program does, in whatever file the program is.
            if any(is_same_program(entry, name) for entry in self.denied):
                raise CommandNotAllowed(name, _DENIED)
            if self.allowlist.lists(name):
                return
        try:
            self.file_of(name)
        except StartFailed:
            raise CommandNotAllowed(
                name, "this host has no such program on its fixed path"
            ) from None

    def _check_denied(self, name: str, file: str) -> None:
        if any(means(entry, file) for entry in self.denied):
            raise CommandNotAllowed(name, _DENIED)


def _account_of(run_as: str | None) -> Account:
    """The user of programs. Raises OSError if the user cannot be looked up."""
    if run_as is None:
        return own_account()
    try:
        return account_of(ProgramUser.named(run_as).uid)
    except KeyError:
        raise OSError(ENOENT, f"there is no user {run_as!a}") from None


def _plan_of(start: StartInteractiveCmd | RunCommand) -> CommandPlan:
    if start.argv and start.argv[0]:
        return CommandPlan((Pipeline("", (tuple(start.argv),)),))
    return parse_plan(start.command or "")


def _check_start(start: StartInteractiveCmd | RunCommand) -> None:
    """Refuse a start that would run other words than it shows, or sizes that no holder survives."""
    if (start.command is None) is (start.argv is None):
        raise StartFailed("START_FAILED", "a start has either a command line or its words")
    sizes = (start.rows, start.cols) if isinstance(start, StartInteractiveCmd) else ()
    if not (
        1 <= start.ring_bytes <= MAX_RING_BYTES
        and all(1 <= size <= MAX_TERMINAL_SIZE for size in sizes)
    ):
        raise StartFailed(
            "START_FAILED",
            "the size of the terminal or of the kept output is not possible",
        )


def _check_environment(additions: dict[str, str]) -> None:
    for name, value in additions.items():
        if name not in _HARMLESS_VARIABLES:
            raise StartFailed(
                "ENV_NOT_ALLOWED",
                f"while a list of commands is in force, {name[:64]!a} may not be set: it may "
                "change what they do",
            )
        if not (_TIME_ZONE if name == "TZ" else _HARMLESS_VALUE).fullmatch(value):
            raise StartFailed(
                "ENV_NOT_ALLOWED",
                f"while a list of commands is in force, {name} may not be set to something "
                "like a path",
            )


def _terminal_description(start: StartInteractiveCmd | RunCommand) -> dict[str, str]:
    """Return the variable that keeps programs to the system's description of their terminal.

    Raises StartFailed for a terminal that the system does not describe.
    """
    io_mode = start.io_mode if isinstance(start, StartInteractiveCmd) else "pipe"
    terminal = start.env.get("TERM") or default_terminal(io_mode)
    directory = system_directory(terminal, others=(default_terminal("pipe"),))
    if directory is None and start.env.get("TERM"):
        said = (
            "while a list of commands is in force, TERM may only name a terminal that this "
            "host's system itself describes"
        )
        raise StartFailed("ENV_NOT_ALLOWED", said)
    return {} if directory is None else {_TERMINFO: directory}


def _unproven(start: StartInteractiveCmd | RunCommand | None) -> Failure | None:
    """Say why a secret's reader cannot be proven in the session that was started with ``start``."""
    if start is None:
        return Failure(
            code="READER_NOT_PROVEN",
            message="how this session was started is not known any more",
        )
    for name, value in start.env.items():
        if name == _TERMINFO and value in TERMINFO_DIRECTORIES:
            # _terminal_description added it. No caller can have written what it names.
            continue
        try:
            _check_environment({name: value})
        except StartFailed:
            text = (
                f"the session was started with the variable {name[:64]!a}, which may change what "
                "its program does with a secret"
            )
            return Failure(code="ENV_NOT_ALLOWED", message=text)
    return None


def _as_shell_text(words: Words, file: str) -> str:
    if is_same_program(words[0], file):
        return quoted((file, *words[1:]))
    # A file that is many programs, such as busybox, tells them apart by the name it is called by.
    return f"( exec -a {quoted((words[0], file, *words[1:]))} )"
