"""The terms of a secret: where it may be typed, and when a change allows more than before."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from controller_client.command_policy.programs import base_name, can_spawn, does_as_told
from controller_client.command_policy.shell_grammar import NotPlain, Words, parse_plan

MAX_COMMANDS: Final = 32
# The host types only for their own question: the programs that they run get no secret.
_ASK_ALONE: Final = frozenset({"sudo", "su"})


class UnusableTerms(ValueError):
    """The terms cannot be stored. The text says which of them, and why."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The hosts and the sessions that a secret may be typed into.

    Attributes:
        any_controller: every controller of the project.
        controllers: these controllers.
        commands: programs, or whole command lines, of the sessions; empty for any session.
        may_echo: type it also where the terminal shows it, for these programs.

    """

    any_controller: bool = False
    controllers: Collection[UUID] = ()
    commands: tuple[str, ...] = ()
    may_echo: bool = False

    def check(self) -> None:
        """Raises UnusableTerms if the terms contradict themselves or name an unusable program."""
        if self.may_echo and not self.commands:
            raise UnusableTerms(
                "a secret that may be typed where the terminal shows it has to name its programs "
                "(commands)"
            )
        if len(self.commands) > MAX_COMMANDS:
            raise UnusableTerms(f"a secret has at most {MAX_COMMANDS} commands")
        for command in self.commands:
            _check_command(command)

    def warnings(self) -> list[str]:
        """Says of each program that runs others what a secret for any of its arguments risks."""
        return [
            f"the program {program} can run others, and they can have it read the secret for "
            "something else; name the whole command line of each session instead"
            for program, *arguments in map(words_of, self.commands)
            if not arguments and can_spawn(program) and base_name(program) not in _ASK_ALONE
        ]

    def widen(self, earlier: "Terms") -> bool:
        """Returns True if anything is allowed that was not.

        Whoever sets such terms has to know the value.
        """
        is_wider = (
            (self.any_controller and not earlier.any_controller)
            or (
                not earlier.any_controller and not set(self.controllers) <= set(earlier.controllers)
            )
            # Without programs, a secret of before may be typed nowhere where it is shown.
            or (self.may_echo and not (earlier.may_echo and earlier.commands))
        )
        if is_wider or not earlier.commands:
            return is_wider
        # A command line allows less than its program with any arguments.
        return not self.commands or not all(
            new in earlier.commands or words_of(new)[0] in earlier.commands for new in self.commands
        )

    def programs_of(self, command: str) -> list[str] | None:
        """The programs that a command line runs.

        Empty if the secret may be typed into any; None if it may not be typed into this line.
        """
        if not self.commands:
            return []
        try:
            lines = list(parse_plan(command).commands())
        except NotPlain:
            return None
        allowed = {words_of(entry) for entry in self.commands}
        if not all(words in allowed or words[:1] in allowed for words in lines):
            return None
        # An earlier version let some of them be named.
        if any(does_as_told(words[0]) for words in lines):
            return None
        return sorted({words[0] for words in lines})


def words_of(entry: str) -> Words:
    """The words of an entry. One word is a program with any arguments. Raises NotPlain."""
    single = parse_plan(entry).single
    if single is None:
        raise NotPlain(entry, "it is more than one command")
    return single


def _check_command(entry: str) -> None:
    try:
        program = words_of(entry)[0]
    except NotPlain as error:
        raise UnusableTerms(str(error)) from None
    if "/" in program and not program.startswith("/"):
        raise UnusableTerms(f"{program!r} is neither the name of a program nor an absolute path")
    if does_as_told(program):
        raise UnusableTerms(
            f"{program!r} runs whatever its arguments say, so a secret for it would be a secret "
            "for any program; leave it out"
        )
