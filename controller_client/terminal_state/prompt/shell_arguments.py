"""The arguments of a shell: does it read its commands from a script or from the terminal?"""

from collections.abc import Iterable
from typing import Final

_SHELLS: Final = (
    "bash rbash zsh rzsh fish dash sh ash hush ksh ksh93 rksh mksh rmksh lksh posh yash tcsh csh "
    "bsd-csh rc es nu xonsh elvish pwsh"
)
SHELLS: Final = frozenset(_SHELLS.split())
_MANY_PROGRAMS: Final = frozenset({"busybox", "toybox"})
"""Files of many programs. The first argument names the program."""
_LETTERS: Final = {
    **dict.fromkeys(("bash", "rbash", "sh"), "oO"),
    **dict.fromkeys(("zsh", "rzsh", "dash", "ash", "hush", "yash"), "o"),
    **dict.fromkeys(("ksh", "ksh93", "rksh", "mksh", "rmksh", "lksh", "posh"), "oRT"),
    **dict.fromkeys(("csh", "bsd-csh", "tcsh"), ""),
    "fish": "dDfopC",
}
"""The letters of the options of each shell that take the next word as their argument."""
_WORDS: Final = (
    "--rcfile --init-file --emulate --profile --init-command --debug --debug-output "
    "--debug-stack-frames --features --profile-startup"
)
_WORDS_WITH_ARGUMENT: Final = frozenset(_WORDS.split())
_ATTACHED: Final = frozenset({"fish"})
"""Shells that take the rest of a word as the argument of its first option that has one."""


def is_named_as_shell(comm: str) -> bool:
    """Return whether a process has the name of a shell.

    A process may have set its whole command line as its name, as ``xonsh`` does.
    """
    return _first_word(comm) in SHELLS


def may_be_shell(comm: str) -> bool:
    """Return whether a process of this name can be a shell; its arguments say more."""
    return is_named_as_shell(comm) or comm in _MANY_PROGRAMS


def is_shell_of_terminal(comm: str, words: list[str]) -> bool:
    """Return whether a process is a shell that reads its commands from the terminal.

    ``words`` are its command line, which begins with its own name.
    """
    name, *arguments = words
    if comm in _MANY_PROGRAMS:
        if _last_part(name) in _MANY_PROGRAMS:
            name, *arguments = arguments or [""]
        comm = _last_part(name).removeprefix("-")
    comm = _first_word(comm)
    return comm in SHELLS and not runs_script(comm, _behind_interpreter(comm, arguments))


def _behind_interpreter(comm: str, arguments: list[str]) -> list[str]:
    """Return the arguments of a shell that is a script itself, without those of its interpreter."""
    names = [_last_part(word) for word in arguments]
    return arguments[names.index(comm) + 1 :] if comm in names else arguments


def _first_word(comm: str) -> str:
    return comm.partition(" ")[0]


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def runs_script(shell: str, arguments: Iterable[str]) -> bool:
    """Return whether the shell's commands come from a file or from ``-c``."""
    words = iter(arguments)
    taking = _LETTERS.get(shell)
    if taking is None:
        return any(word == "-c" or not word.startswith("-") for word in words)
    for word in words:
        if word in {"-", "--"}:
            return next(words, None) is not None
        if word.startswith("--"):
            if word.startswith("--command"):
                return True
            if word in _WORDS_WITH_ARGUMENT:
                next(words, None)
        elif word[:1] in {"-", "+"}:
            if word[0] == "-" and (source := _source_of(shell, word[1:], taking)) is not None:
                return source == "c"
            for _ in range(_words_taken(shell, word[1:], taking)):
                next(words, None)
        else:
            return True
    return False


def _source_of(shell: str, letters: str, taking: str) -> str | None:
    """Return the option that names the source of commands: ``c`` or ``s``; None without one."""
    if shell in _ATTACHED:
        end = next((at for at, letter in enumerate(letters) if letter in taking), len(letters))
        letters = letters[:end]
    return "c" if "c" in letters else "s" if "s" in letters else None


def _words_taken(shell: str, letters: str, taking: str) -> int:
    if shell in _ATTACHED:
        return int(letters[-1] in taking and not any(each in taking for each in letters[:-1]))
    return sum(letter in taking for letter in letters)
