"""Allowlists of the programs that a command line may run.

An allowlist is a list of entries: ``sleep`` (found on the host's fixed path only),
``/opt/tool/bin/run`` (that one file), ``python3:shell`` (marked: a program that can itself run
programs). Such a program is refused without the mark even if it is listed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from controller_client.command_policy.programs import can_spawn
from controller_client.command_policy.shell_grammar import (
    CommandNotAllowed,
    CommandPlan,
    parse_plan,
)

ANY: Final = "*"
MARK: Final = ":shell"


@dataclass(frozen=True)
class Allowlist:
    """A list of programs that may run.

    ``programs`` maps each listed name to whether it is marked. None allows every command line.
    """

    programs: Mapping[str, bool] | None = None

    @classmethod
    def parse(cls, entries: Iterable[str] | None) -> Self:
        """Make a list from entries. None or a lone ``*`` allows everything, no entry nothing.

        Raises ValueError for a text that can be no entry.
        """
        if entries is None:
            return cls(None)
        names = [entry.strip() for entry in entries]
        if names == [ANY]:
            return cls(None)
        if problem := next((problem for name in names if (problem := entry_problem(name))), None):
            raise ValueError(problem)
        return cls({name.removesuffix(MARK): name.endswith(MARK) for name in names})

    @classmethod
    def agreed(cls, allowlists: Iterable[Self]) -> Self:
        """Merge lists that have to agree; a list that allows everything does not count."""
        in_force = [one.programs for one in allowlists if one.programs is not None]
        if not in_force:
            return cls(None)
        names = set(in_force[0]).intersection(*in_force)
        return cls({name: all(programs[name] for programs in in_force) for name in names})

    @property
    def is_open(self) -> bool:
        """No allowlist is in force."""
        return self.programs is None

    @property
    def usable(self) -> list[str]:
        """The names that a command may begin with, without marks; what lacks its mark is none."""
        return [name for name in sorted(self.programs or ()) if self._may_run(name)]

    def plan(self, command: str) -> CommandPlan:
        """Return the plan of an allowed line, under a list that is in force.

        Raises CommandNotAllowed, which names the part that is not allowed.
        """
        plan = parse_plan(command)
        for words in plan.commands():
            self.check_program(words[0])
        return plan

    def check_program(self, name: str) -> None:
        """Raise CommandNotAllowed unless ``name``, as written, is listed and marked if needed."""
        if not self.lists(name):
            raise CommandNotAllowed(name, "this program is not on the list of allowed commands")
        if not self._may_run(name):
            raise CommandNotAllowed(
                name, f"it can run other programs, so the list has to say {name}{MARK}"
            )

    def lists(self, name: str) -> bool:
        """Tell whether the list has the name, marked or not."""
        return self.programs is not None and name in self.programs

    def is_marked(self, name: str) -> bool:
        """Tell whether the list allows the program to run others."""
        return self.programs is not None and self.programs.get(name, False)

    def _may_run(self, name: str) -> bool:
        return self.is_marked(name) or not can_spawn(name)


def entry_problem(entry: str) -> str | None:
    """Say why a text can be no entry of a list; None if it can be one."""
    name = entry.removesuffix(MARK)
    if not name:
        return "an entry is empty"
    if not name.isprintable() or any(
        character.isspace() or character in ",:" for character in name
    ):
        return (
            f"{entry[:64]!a} is no program: a name or an absolute path, perhaps with {MARK} "
            "at its end"
        )
    if name == ANY:
        return f"{ANY} allows everything and stands alone"
    if "/" in name and (
        not name.startswith("/") or any(part in {"", ".", ".."} for part in name.split("/")[1:])
    ):
        return f"{entry[:64]!a} is no program: a path has to be absolute and without . or .."
    return None
