"""What a project allows to be started and typed: its own lists, or the settings ALLOWED_COMMANDS and ALLOWED_DIRECTORIES.

The server can judge names, not files: what a name or a directory really is, the host finds out, by the same lists, which every start
carries. With no list of commands in force none is pretended: the caller's token has to have ``shell:any``.
What a session may use goes with its start in the same way.
"""

import json
import posixpath
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db import connection

from controller_client.command_policy import allowlist
from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.programs import is_shell
from controller_client.command_policy.shell_grammar import NotPlain, parse_plan
from controller_client.command_policy.typed_lines import check_input, check_script, listed
from controller_client.protocol.messages import ProjectRules, ResourceLimits, RunCommand, SendInput, StartInteractiveCmd
from projects.authentication import Caller
from projects.conf import conf
from projects.dispatch import as_parameter
from projects.errors import CommandNotAllowed, CwdNotAllowed
from projects.policy import START_SCOPES

Start = StartInteractiveCmd | RunCommand

ANY_COMMAND_SCOPE: Final = START_SCOPES[1]
_RULES: Final = "SELECT allowed_commands, allowed_directories, session_limits, strict_seconds FROM projects_project WHERE id = %s"


@dataclass(frozen=True)
class Rules:
    """What is in force for one project."""

    commands: Allowlist
    project: ProjectRules
    limits: ResourceLimits

    def checked_start(self, caller: Caller | None, start: Start) -> Start:
        """The start as the host is to get it: its words, and the lists. Raises ScopeMissing, CommandNotAllowed or CwdNotAllowed."""
        self._check_directory(start.cwd)
        if self.commands.is_open:
            if caller is not None:
                caller.require(ANY_COMMAND_SCOPE)
            return msgspec.structs.replace(start, rules=self.project, limits=self.limits)
        try:
            plan = self.commands.plan(start.command or "")
            if any(is_shell(words[0]) for words in plan.commands()):
                check_script(start.input if isinstance(start, RunCommand) else start.stdin_data, listed(self.commands))
        except allowlist.CommandNotAllowed as error:
            raise CommandNotAllowed(str(error), self._names()) from None
        if plan.single is not None:
            return msgspec.structs.replace(start, command=None, argv=list(plan.single), rules=self.project, limits=self.limits)
        return msgspec.structs.replace(start, command=plan.script(), rules=self.project, limits=self.limits)

    def check_typed(self, message: SendInput, *, is_hidden: bool) -> None:
        """Raises CommandNotAllowed unless the input, for a shell, is allowed lines. A hidden one is not quoted."""
        if self.commands.is_open:
            return
        try:
            check_input(message.data, message.keys, listed(self.commands))
        except allowlist.CommandNotAllowed as error:
            text = "this input is not an allowed command line, and a shell may read it" if is_hidden else str(error)
            raise CommandNotAllowed(text, self._names()) from None

    def _check_directory(self, cwd: str | None) -> None:
        roots = self.project.directories
        # A relative one starts at a home directory that only the host knows.
        if roots is None or cwd is None or not cwd.startswith("/"):
            return
        if ".." in cwd.split("/") or not any(_is_below(posixpath.normpath(cwd), posixpath.normpath(root)) for root in roots):
            raise CwdNotAllowed(roots)

    def _names(self) -> list[str]:
        return sorted(self.commands.programs or ())


def rules_of(project_id: UUID) -> Rules:
    """The rules of a project, read now: a change holds from the next start or input on."""
    with connection.cursor() as cursor:
        cursor.execute(_RULES, [as_parameter(project_id)])
        row = cursor.fetchone()
    commands, directories, limits, strict = (None,) * 4 if row is None else map(_as_json, row)
    names = commands if commands is not None else conf.allowed_commands
    in_force = Allowlist.parse(names)
    return Rules(
        commands=in_force,
        project=ProjectRules(
            commands=None if in_force.is_open else names,
            directories=directories if directories is not None else conf.allowed_directories,
            strict_seconds=strict,
        ),
        limits=ResourceLimits(**{**conf.session_limits, **(limits or {})}),
    )


def takes_lines(command: str, terminal_kind: str) -> bool:
    """Whether what is typed into a session is command lines: its program is a shell, or a shell's prompt is what it waits at."""
    if terminal_kind == "shell":
        return True
    try:
        return any(is_shell(words[0]) for words in parse_plan(command).commands())
    except NotPlain:
        words = command.split()
        return bool(words) and is_shell(words[0])


def _as_json(column: Any) -> Any:
    return json.loads(column) if isinstance(column, str) else column


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
