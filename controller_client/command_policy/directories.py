"""The directories in which the commands of a line may run, as far as the line tells them.

The result is for naming files: a directory too many does no harm, so each one that a command may
have gone to counts for the whole line.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from posixpath import join
from shlex import quote
from typing import Final, NamedTuple

from controller_client.command_policy.inner_lines import leaves_a_program_open, surveyed_within
from controller_client.command_policy.programs import can_spawn
from controller_client.command_policy.shell_grammar import Expanded, Words
from controller_client.command_policy.spelling import (
    MAX_PATTERNS,
    TRANSPARENT,
    is_pattern,
    without_transparent,
)
from controller_client.command_policy.survey import Survey

MAX_DIRECTORIES: Final = 16
_GOES: Final = frozenset({"cd", "chdir", "pushd"})
_GOES_AT_OPTION: Final = frozenset({"-C", "-D", "--chdir", "--directory", "--cwd", "--chroot"})
_READS_INTO: Final = frozenset({"coproc", "getopts", "mapfile", "read", "readarray", "vared"})
# The name of a variable, perhaps with a place in an array, or a prompt as in ksh.
_NAME: Final = re.compile(r"([A-Za-z_]\w*)(?:[\[?].*)?", re.DOTALL)
_NAMES: Final = re.compile(r"[A-Za-z_]\w*")
# Where a shell puts the number of a descriptor: ``exec {A}<in``.
_DESCRIPTOR: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_TAKES_VALUE: Final = re.compile(r"-[A-Za-z]*[dinNptu]")
_MAPPING_TAKES_VALUE: Final = re.compile(r"-[A-Za-z]*[cCdnOsu]")
_OPTIONS: Final = 16
"""No more letters of options are looked at, which is more than there are."""
_TAKES_NAME: Final = re.compile(r"-[A-Za-z]*a")
_ASSIGNMENT: Final = re.compile(r"(?:--[a-z-]+=|-[A-Za-z])?([A-Za-z_][A-Za-z0-9_]*)=")
# What they run is not in the line, or is text to the grammar.
_UNSEEN: Final = frozenset({"", ".", "alias", "enable", "eval", "hash", "source"})
# An empty name is that of a variable which is not told.
_DECIDES: Final = frozenset({"", "CDPATH", "HOME", "OLDPWD", "PATH", "PWD"})
# A variable of this name, or of a name that begins so, may name files that programs run.
_LOADS: Final = (
    *("BASH", "DYLD_", "ENV", "GIT_", "JAVA_", "LD_", "LESS", "NODE_", "PERL", "PYTHON", "RUBY"),
    *("BROWSER", "EDITOR", "IFS", "MANPAGER", "PAGER", "PROMPT_COMMAND", "PS", "RUSTC", "SHELL"),
    *("SUDO_ASKPASS", "SSH_ASKPASS", "VISUAL", "ZDOTDIR", "CC", "CXX", "MAKE"),
)


class Directories(NamedTuple):
    """``paths`` may be relative to the home directory; ``are_all``: the line goes to no other."""

    paths: tuple[str, ...]
    are_all: bool


def start_of(cwd: str | None, env: Mapping[str, str] | None) -> str | None:
    """Return the directory in which a program starts with these variables of its caller.

    It may be relative to the user's home directory; None is that directory itself.
    """
    home = (env or {}).get("HOME")
    return cwd if home is None else join(home, cwd or "")


def line_of(command: str, env: Mapping[str, str] | None) -> str:
    """Return the line with the ``HOME`` of its caller set before it, for naming its files."""
    home = (env or {}).get("HOME")
    return command if home is None else f"HOME={quote(home)}\n{command}"


def directories(command: str, start: str) -> Directories:
    """Return the directories of a line that starts in ``start``."""
    return directories_of(surveyed_within(command, start), start)


def loads_code(variable: str) -> bool:
    """Tell whether a variable of this name may make programs run a file that it names."""
    return variable.startswith(_LOADS)


def directories_of(survey: Survey, start: str) -> Directories:
    """Return the directories of a line that was surveyed."""
    names = survey.assigns.union(*map(_set_by, survey.commands))
    is_told = not any(name in _DECIDES or loads_code(name) for name in names)
    paths, are_all = [start], survey.is_whole and is_told and not leaves_a_program_open(survey)
    goes = [target for words in survey.commands for target in _targets(words)]
    for target in goes:
        found = [start] if target == "-" else [join(path, target) for path in paths]
        paths += [path for path in found if path not in paths]
    is_seen = (
        all(without_transparent(words)[0] not in _UNSEEN for words in survey.commands)
        and "" not in goes
    )
    patterns = {word for words in survey.commands for word in words if is_pattern(word)}
    has_room = len(paths) <= MAX_DIRECTORIES and len(patterns) <= MAX_PATTERNS
    # A loop may go down the same step again and again.
    return Directories(
        tuple(paths[:MAX_DIRECTORIES]),
        are_all and is_seen and has_room and (survey.is_straight or not goes),
    )


def _set_by(words: Words) -> set[str]:
    """The variables that a command sets: ``env A=1 sh``, ``make CC=gcc``, ``read A``."""
    is_transparent, words = words[0] in TRANSPARENT, without_transparent(words)
    found = {name[1] for word in words[1:] if (name := _DESCRIPTOR.fullmatch(word))}
    if words[0] in _READS_INTO:
        return found.union(_read_into(*words))
    if words[0] in {"printf", "wait"}:
        return found.union(_named_by_option(words, "v" if words[0] == "printf" else "p"))
    if words[0] == "let":
        texts = [_text_of(word) for word in words[1:]]
        return found.union(*({""} if text[:1] == "$" else _NAMES.findall(text) for text in texts))
    if can_spawn(words[0]) or is_transparent:
        found |= {name[1] for word in words[1:] if (name := _ASSIGNMENT.match(word))}
    return found


def _read_into(name: str, *given: str) -> Iterator[str]:
    """Yield the variables that ``read`` and the like set; empty for one that is not told."""
    is_mapping = name in {"mapfile", "readarray"}
    if is_mapping and any(word[:1] == "-" and "C" in word for word in given):
        # It runs a line for what it reads, which may set any.
        yield ""
    takes_value = _MAPPING_TAKES_VALUE if is_mapping else _TAKES_VALUE
    operands = given[:1] if name == "coproc" else given[1:] if name == "getopts" else given
    for before, word in pairwise(("", *operands)):
        text = _text_of(word)
        if text.startswith("-"):
            # The name may stand behind the letters of options.
            yield from (text[at:].partition("[")[0] for at in range(1, min(len(text), _OPTIONS)))
            is_name = _TAKES_NAME.match(text) is not None
        else:
            is_name = takes_value.fullmatch(before) is None
        if named := _NAME.fullmatch(text):
            yield named[1]
        elif not word and is_name:
            yield ""


def _named_by_option(words: Words, letter: str) -> Iterator[str]:
    """Yield the variable of ``printf -v A`` or ``wait -p A``; empty for one that is not told."""
    option_with = re.compile(f"-[a-z]*{letter}[\"']*(.*)", re.DOTALL)
    for at, option in enumerate(words, 1):
        found = option_with.match(_text_of(option))
        if found and (found[1] or at < len(words)):
            named = _NAME.fullmatch(found[1] or _text_of(words[at]))
            yield named[1] if named else ""
    if letter == "v" and any(_text_of(word)[:1] == "$" and not word for word in words[1:2]):
        # The text may be the option.
        yield ""


def _text_of(word: str) -> str:
    """Return a word as the line spells it, without the quotes at its beginning."""
    return word.text.lstrip("\"'") if isinstance(word, Expanded) else word


def _targets(words: Words) -> Iterator[str]:
    """The places that a command goes to: empty if the line does not tell, ``-`` if back."""
    name, *arguments = without_transparent(words)
    if name in _GOES:
        plain = [word for word in arguments if word == "-" or not word.startswith(("-", "+"))]
        # Without an operand ``cd`` goes home, and ``pushd`` back.
        yield plain[0] if plain else ("" if name != "pushd" else "-")
        return
    for option, value in pairwise([*arguments, ""]):
        if option in _GOES_AT_OPTION:
            yield value
        elif (at := option.partition("=")) and at[0] in _GOES_AT_OPTION and at[1]:
            yield at[2]
        elif option.startswith("-C") and option != "-C":
            yield option[2:]
