"""The rules of a project for what may be started and typed.

They are its own lists, or the settings ALLOWED_COMMANDS and ALLOWED_DIRECTORIES.

The server can judge names, not files: what a name or a directory really is, the host finds out, by
the same lists, which every start carries. With no list of commands in force none is pretended: the
caller's token has to have ``shell:any``. What a session may use goes with its start in the same
way.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from controller_client.command_policy import shell_grammar
from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.programs import is_shell
from controller_client.command_policy.shell_grammar import NotPlain, parse_plan
from controller_client.command_policy.typed_lines import check_input, check_script, listed
from controller_client.protocol.keys import canonical_key
from controller_client.protocol.messages import ProjectRules, ResourceLimits
from projects.accounts.authentication import Caller
from projects.conf import conf
from projects.errors.commands import CommandNotAllowed, CwdNotAllowed
from projects.policy.arguments import START_SCOPES
from projects.policy.launch import Launch
from projects.policy.typed_input import Typing
from projects.storage.columns import as_json, as_parameter
from projects.storage.rows import execute, row_soon

ANY_COMMAND_SCOPE: Final = START_SCOPES[1]
_RULES: Final = (
    "SELECT allowed_commands, allowed_directories, session_limits, strict_seconds FROM "
    "projects_project WHERE id = %s"
)


class _RulesRow(NamedTuple):
    """The columns of ``_RULES``, as JSON or what it says, or None."""

    allowed_commands: Any
    allowed_directories: Any
    session_limits: Any
    strict_seconds: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedStart:
    """The part of a START that the rules decide.

    The host runs the command line ``command`` or the words ``argv``, never both. It judges them
    again by ``rules``, and gives the program no more than ``limits``.
    """

    command: str | None
    argv: list[str] | None
    rules: ProjectRules
    limits: ResourceLimits


@dataclass(frozen=True)
class Rules:
    """The rules in force for one project."""

    commands: Allowlist
    project: ProjectRules
    limits: ResourceLimits

    def judge(self, caller: Caller | None, launch: Launch) -> AllowedStart:
        """Judge a launch by the lists; what the host gets is the words that were judged.

        Raises ScopeMissing, CommandNotAllowed or CwdNotAllowed.
        """
        self._check_directory(launch.cwd)
        if self.commands.is_open:
            if caller is not None:
                caller.require(ANY_COMMAND_SCOPE)
            return self._allowed(command=launch.command)
        try:
            plan = self.commands.plan(launch.command)
            if any(is_shell(words[0]) for words in plan.commands()):
                check_script(launch.stdin_data, listed(self.commands))
        except shell_grammar.CommandNotAllowed as error:
            raise CommandNotAllowed(str(error), self.commands.usable) from None
        if plan.single is not None:
            return self._allowed(argv=list(plan.single))
        return self._allowed(command=plan.script())

    def _allowed(
        self,
        *,
        command: str | None = None,
        argv: list[str] | None = None,
    ) -> AllowedStart:
        return AllowedStart(command=command, argv=argv, rules=self.project, limits=self.limits)

    def check_typed(self, typing: Typing, *, is_hidden: bool) -> None:
        """Raises CommandNotAllowed unless the input, for a shell, is allowed lines.

        A hidden one is not quoted.
        """
        if self.commands.is_open:
            return
        try:
            keys = [canonical_key(key) for key in typing.keys]
            check_input(typing.data, keys, listed(self.commands))
        except shell_grammar.CommandNotAllowed as error:
            text = (
                "this input is not an allowed command line, and a shell may read it"
                if is_hidden
                else str(error)
            )
            raise CommandNotAllowed(text, self.commands.usable) from None

    def _check_directory(self, cwd: str | None) -> None:
        roots = self.project.directories
        # A relative one starts at a home directory that only the host knows.
        if roots is None or cwd is None or not cwd.startswith("/"):
            return
        if ".." in cwd.split("/") or not any(
            _is_below(posixpath.normpath(cwd), posixpath.normpath(root)) for root in roots
        ):
            raise CwdNotAllowed(roots)


def rules_of(project_id: UUID) -> Rules:
    """The rules of a project, read now: a change holds from the next start or input on."""
    return rules_soon(project_id)()


def rules_soon(project_id: UUID) -> Callable[[], Rules]:
    """Ask for the rules of a project, and return the function that returns them."""
    asked = row_soon(_RulesRow, execute(_RULES, [as_parameter(project_id)]))
    return lambda: _rules_in(asked())


def _rules_in(row: _RulesRow | None) -> Rules:
    commands, directories, limits, strict = (None,) * 4 if row is None else map(as_json, row)
    names = commands if commands is not None else list(conf.allowed_commands)
    in_force = Allowlist.parse(names)
    return Rules(
        commands=in_force,
        project=ProjectRules(
            commands=None if in_force.is_open else names,
            directories=(
                directories if directories is not None else list(conf.allowed_directories) or None
            ),
            strict_seconds=strict,
        ),
        limits=ResourceLimits(**{**conf.session_limits, **(limits or {})}),
    )


def takes_lines(command: str, terminal_kind: str) -> bool:
    """True if input for a session is command lines.

    Its program is a shell, or waits at a shell's prompt.
    """
    if terminal_kind == "shell":
        return True
    try:
        return any(is_shell(words[0]) for words in parse_plan(command).commands())
    except NotPlain:
        words = command.split()
        return bool(words) and is_shell(words[0])


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
