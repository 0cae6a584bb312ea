"""The check of text that is typed into a running shell while an allowlist is in force.

An input is whole lines, each a plain list of allowed commands, or keys that edit nothing. An
unfinished line is refused: what the shell has of it would have to be known exactly, across retries,
lost inputs and restarts, to know what the next input makes of it. And because some shell reads the
line, not this grammar, what shells read differently is refused as well: history, backslashes, some
quotes, anything but printable ASCII, and builtins that can change what a later line does.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.shell_grammar import CommandNotAllowed, parse_plan

_PLAIN_KEYS: Final = frozenset({"enter", "ctrl-c", "ctrl-d", "ctrl-z"})
_PLAIN_CONTROLS: Final = frozenset({"\x03", "\x04", "\x1a"})
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_OTHER_MEANINGS: Final = {
    "!": "shells expand it to an earlier line",
    "\\": "shells differ in what it escapes",
}
# Nothing is escaped in a line that got this far, so each quote ends at the next one like it.
_QUOTE: Final = re.compile(
    r"""'[^']*'|"(?P<double>[^"]*)"|(?P<marked>(?<![A-Za-z0-9_])[bprBPR]?[fF][bprBPR]?["'])"""
)
_PUNCTUATION: Final = frozenset(";&|<>(){}#")
# In a running shell these are builtins. They need not be listed, because they run nothing and do
# not change the meaning of a later line.
_HARMLESS_BUILTINS: Final = frozenset({"exit", "logout", "jobs", "fg", "bg", "pwd"})
# The arguments that these builtins may have. In shells other than bash a number may be an
# expression, which may run anything, and jobs -x runs a command.
_JOB: Final = r"%[\w+%-]*|\d+"
_ARGUMENTS: Final = {
    "exit": re.compile(r"\d*"),
    "logout": re.compile(r"\d*"),
    "jobs": re.compile(rf"-[lprsn]+|{_JOB}", re.ASCII),
    "fg": re.compile(_JOB, re.ASCII),
    "bg": re.compile(_JOB, re.ASCII),
    "pwd": re.compile(r"-[LP]"),
    "ulimit": re.compile(r"-[A-Za-z]+|\d+|unlimited|hard|soft"),
}
# These builtins do what the programs of the same names do, so a list that has the names allows
# them.
_BUILTINS_LIKE_PROGRAMS: Final = frozenset(
    {"echo", "true", "false", "kill", "cd", "ulimit", "umask", "clear"}
)
# The other builtins of bash, zsh, ksh, fish and csh: they evaluate, assign, define, or change where
# programs are looked for.
_REFUSED: Final = (
    ". : [ abbr alias argparse autoload begin bind bindkey block break breakpoint builtin caller "
    "case chdir command commandline compctl compgen complete compopt contains continue coproc "
    "count declare dirs disable disown echotc echoti emulate enable end enum eval exec export fc "
    "float foreach functions funcsave getln getopts glob hash hashstat help hist history if "
    "integer let limit local mapfile math nameref noglob notify onintr or popd print printenv "
    "printf private pushd pushln r random read readarray readonly rehash repeat return sched "
    "select set setenv setopt settc setty shift shopt source status stop string suspend switch "
    "telltc test time times trap ttyctl type typeset unalias unfunction unhash unlimit unset "
    "unsetenv unsetopt vared wait whence where which while zcompile zformat zle zmodload "
    "zparseopts zpty zselect zsocket zstyle ztcp"
)
REFUSED_BUILTINS: Final = frozenset(_REFUSED.split())


def check_input(data: bytes, keys: Sequence[str], check_program: Callable[[str], None]) -> None:
    """Raise CommandNotAllowed if the input could run a program that is not allowed.

    ``keys`` are names as ``canonical_key`` gives them. ``check_program`` raises CommandNotAllowed
    for such a program. It is not called for harmless builtins.
    """
    for key in keys:
        if key not in _PLAIN_KEYS:
            raise CommandNotAllowed(
                key, "keys that edit a line cannot be checked; type the whole line"
            )
    text = data.decode("utf-8", "replace")
    if not text or text in _PLAIN_CONTROLS:
        return
    *lines, rest = _LINE_END.split(text)
    for line in lines:
        if line.strip(" "):
            _check_line(line, check_program)
    if rest:
        raise CommandNotAllowed(
            _shown(rest), "a line is checked as a whole; type it with \\n at its end"
        )


def check_script(data: bytes, check_program: Callable[[str], None]) -> None:
    """Check the whole input of a shell as ``check_input`` does; its last line needs no end."""
    check_input(
        data if data.endswith((b"\n", b"\r")) or not data else data + b"\n", (), check_program
    )


def listed(allowlist: Allowlist) -> Callable[[str], None]:
    """Return the check of an allowlist alone, for ``check_input``."""

    def check(name: str) -> None:
        if name in _BUILTINS_LIKE_PROGRAMS and allowlist.lists(name):
            return
        allowlist.check_program(name)

    return check


def is_builtin_like_program(name: str) -> bool:
    """Tell whether a running shell has a builtin that does what the program of this name does.

    Such a program need not exist on the host.
    """
    return name in _BUILTINS_LIKE_PROGRAMS


def _check_line(line: str, check_program: Callable[[str], None]) -> None:
    for character in line:
        if not " " <= character <= "~":
            raise CommandNotAllowed(
                f"U+{ord(character):04X}",
                "what is typed into a shell has to be printable ASCII, and a line's end",
            )
        if character in _OTHER_MEANINGS:
            raise CommandNotAllowed(character, _OTHER_MEANINGS[character])
    if line.lstrip(" ").startswith("^"):
        raise CommandNotAllowed("^", "shells expand it to an earlier line")
    plan = parse_plan(line)
    _check_quotes(line)
    for words in plan.commands():
        name = words[0]
        if any(word.startswith("=") for word in words):
            raise CommandNotAllowed(
                "=", "some shells replace a word that begins with it by a program's path"
            )
        if name in REFUSED_BUILTINS:
            raise CommandNotAllowed(
                name,
                "in a shell this is a builtin that can change what later lines run; give the "
                "program's path",
            )
        if (
            name in _ARGUMENTS
            and (
                odd := next(
                    (word for word in words[1:] if not _ARGUMENTS[name].fullmatch(word)), None
                )
            )
            is not None
        ):
            raise CommandNotAllowed(odd, f"in a shell {name} is a builtin that might evaluate it")
        if name not in _HARMLESS_BUILTINS:
            check_program(name)


def _check_quotes(line: str) -> None:
    """Refuse what only bash and its like take for a quote."""
    for found in _QUOTE.finditer(line):
        if found["marked"]:
            raise CommandNotAllowed(found[0], "some shells evaluate a string with such a mark")
        if found["double"] and not _PUNCTUATION.isdisjoint(found["double"]):
            raise CommandNotAllowed(
                _shown(found[0]),
                "shells differ in what double quotes keep together; use single ones",
            )


def _shown(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
