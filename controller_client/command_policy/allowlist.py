"""Which programs a command line may run.

An allowlist is a list of entries: ``sleep`` (found on the host's fixed path only), ``/opt/tool/bin/run`` (that one file),
``python3:shell`` (marked: a program that can itself run programs). Such a program is refused without the mark even if it is listed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from controller_client.command_policy.programs import can_spawn
from controller_client.command_policy.shell_grammar import CommandPlan, NotPlain, parse_plan

ANY: Final = "*"
MARK: Final = ":shell"


class CommandNotAllowed(Exception):
    """``part`` of a command line is refused because of ``reason``. The text shows the part with everything but plain ASCII escaped."""

    code: ClassVar[str] = "COMMAND_NOT_ALLOWED"

    def __init__(self, part: str, reason: str) -> None:
        self.part, self.reason = part, reason
        super().__init__(f"{part!a} is not allowed: {reason}")


@dataclass(frozen=True)
class Allowlist:
    """``programs`` maps each listed name to whether it is marked; None allows every command line."""

    programs: Mapping[str, bool] | None = None

    @classmethod
    def parse(cls, entries: Iterable[str] | None) -> Self:
        """From entries; None or a lone ``*`` allows everything, no entry at all nothing. Raises ValueError for what can be no entry."""
        if entries is None:
            return cls(None)
        names = [entry.strip() for entry in entries]
        if names == [ANY]:
            return cls(None)
        if problem := next((problem for name in names if (problem := entry_problem(name))), None):
            raise ValueError(problem)
        return cls({name.removesuffix(MARK): name.endswith(MARK) for name in names})

    @property
    def is_open(self) -> bool:
        """No allowlist is in force."""
        return self.programs is None

    def plan(self, command: str) -> CommandPlan:
        """The plan of an allowed line. Raises CommandNotAllowed, naming the part. Only for an allowlist in force."""
        plan = plain(command)
        for words in plan.commands():
            self.check_program(words[0])
        return plan

    def check_program(self, name: str) -> None:
        """Raises CommandNotAllowed unless ``name``, as it was written, is listed, and marked if it has to be."""
        if not self.lists(name):
            raise CommandNotAllowed(name, "this program is not on the list of allowed commands")
        if can_spawn(name) and not self.is_marked(name):
            raise CommandNotAllowed(name, f"it can run other programs, so the list has to say {name}{MARK}")

    def lists(self, name: str) -> bool:
        """Whether the list has the name, marked or not."""
        return self.programs is not None and name in self.programs

    def is_marked(self, name: str) -> bool:
        """Whether the list says that the program may run others."""
        return self.programs is not None and self.programs.get(name, False)


def plain(command: str) -> CommandPlan:
    """The plan of a line, whatever its programs. Raises CommandNotAllowed if it is more than a plain list of commands."""
    try:
        return parse_plan(command)
    except NotPlain as error:
        raise CommandNotAllowed(error.part, error.reason) from None


def entry_problem(entry: str) -> str | None:
    """Why a text can be no entry of a list; None if it can."""
    name = entry.removesuffix(MARK)
    if not name:
        return "an entry is empty"
    if not name.isprintable() or any(character.isspace() or character in ",:" for character in name):
        return f"{entry[:64]!a} is no program: a name or an absolute path, perhaps with {MARK} at its end"
    if name == ANY:
        return f"{ANY} allows everything and stands alone"
    if "/" in name and (not name.startswith("/") or any(part in {"", ".", ".."} for part in name.split("/")[1:])):
        return f"{entry[:64]!a} is no program: a path has to be absolute and without . or .."
    return None
