"""The command lines inside of a command line: in ``sh -c '…'``, ``su -c '…'`` or a here-document.

Whether a text is a line is a guess. The result is for naming files: a line too many does no harm.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Final

from controller_client.command_policy.programs import (
    SHELLS,
    base_name,
    can_spawn,
    is_interpreter,
    is_shell,
)
from controller_client.command_policy.shell_grammar import Expanded, Words
from controller_client.command_policy.spelling import known_values, spelled_out
from controller_client.command_policy.survey import Survey, surveyed

MAX_DEPTH: Final = 4
MAX_LINES: Final = 64
MAX_WORDS: Final = 256
"""The words of all commands of a line that are looked at."""
_TAKE_LINES: Final = frozenset(
    {"doas", "env", "eval", "flock", "parallel", "runuser", "screen", "script", "sg", "su", "sudo"}
    | {"tmux", "trap", "watch"}
)
# They run the program that their operands name, and read no script themselves.
_WRAPPERS: Final = frozenset(
    {"chroot", "chrt", "cpulimit", "doas", "env", "flock", "ionice", "nice", "nohup", "nsenter"}
    | {"pkexec", "prlimit", "run0", "setpriv", "setsid", "start-stop-daemon", "stdbuf", "strace"}
    | {"sudo", "systemd-run", "taskset", "time", "timeout", "unbuffer", "unshare", "watch"}
)
_OTHER_WRAPPERS: Final = _TAKE_LINES | {"find", "xargs"}
# They are many programs in one file: their first operand says which.
_MANY_IN_ONE: Final = frozenset({"busybox", "toybox"})
# Their first operand is a script, which some of them look for under other names too.
_TAKE_SCRIPTS: Final = (SHELLS - _MANY_IN_ONE) | {
    *("expect", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python", "Rscript"),
    *("ruby", "tclsh", "ts-node", "tsx", "wish"),
}
# They put what they read or find behind the words of a program, or in the place of a mark.
_FEEDERS: Final = frozenset({"find", "parallel", "xargs"})
_FEEDS_AT: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SEPARATORS: Final = frozenset({":::", "::::", ":::+", "::::+", ";", "+"})
_MARK: Final = "{}"
_MARK_OF_PARALLEL: Final = r"\{[^{}]*\}"
_MARK_OPTION: Final = re.compile(r"(?:-[0oprtx]*[Ii]|--replace(?:=|$))(.*)", re.DOTALL)
# They run every program of a directory.
_RUN_ALL: Final = frozenset({"run-parts"})
_CODE_OPTIONS: Final = frozenset({"-", "--command", "--eval", "--help", "--print", "--version"})
_OF_PYTHON: Final = re.compile(r"-[bBdEiIOPqsSuvx]*m")
_OF_NODE: Final = re.compile(r"(?:-r|--require|--import|--loader|--experimental-loader)(?:$|=)")
_MODULES: Final = {
    **dict.fromkeys(("python", "pypy"), _OF_PYTHON),
    **dict.fromkeys(("node", "nodejs", "bun", "deno"), _OF_NODE),
    "perl": re.compile(r"-[0acFlnpsStTuUvwWX]*[MmI]"),
    "ruby": re.compile(r"-[aglnpsSvwW]*[rI]"),
    **dict.fromkeys(("lua", "luajit"), re.compile(r"-l")),
}
"""The options with which interpreters take a module by its name, or a directory of modules."""
_LINE_OPTION: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*$|--command$")
_BUILTINS: Final = frozenset({"builtin", "command", "coproc", "exec"})


def surveyed_within(command: str, home: str) -> Survey:
    """Survey a command line, together with the lines inside of it.

    The result has the commands, files and variables of all of them, up to ``MAX_WORDS`` words, with
    what they expand to where that can be told. ``is_whole`` is False as well if there is more than
    that, or lines are nested too deeply.
    """
    outermost = _bounded(surveyed(command))
    values = known_values(outermost, home, {})
    whole = _bounded(_with_programs_in_one(spelled_out(outermost, home, {})))
    pending = [(line, 1) for line in _inner_lines(whole)]
    count = 0
    while pending:
        line, depth = pending.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_LINES:
            return replace(whole, is_whole=False)
        inner = _with_programs_in_one(spelled_out(surveyed(line), home, values))
        whole = _bounded(
            replace(
                whole,
                commands=whole.commands + inner.commands,
                reads=whole.reads + inner.reads,
                writes=whole.writes + inner.writes,
                values=whole.values + inner.values,
                assigns=whole.assigns | inner.assigns,
                is_straight=whole.is_straight and inner.is_straight,
            )
        )
        pending += [(found, depth + 1) for found in _inner_lines(inner)]
    return whole


def _bounded(survey: Survey) -> Survey:
    kept, left = list[Words](), MAX_WORDS
    for words in survey.commands:
        if left < 0:
            break
        if left > 0:
            kept.append(words[:left])
        left -= len(words)
    is_whole = survey.is_whole and left >= 0 and len(survey.reads) <= MAX_WORDS
    reads = survey.reads[:MAX_WORDS]
    return replace(survey, commands=tuple(kept), reads=reads, is_whole=is_whole)


def _with_programs_in_one(survey: Survey) -> Survey:
    """Return the survey with each command, and after ``busybox sh a`` also ``sh a``.

    It ends as soon as it has more than ``MAX_WORDS`` words, because a line of nothing but
    ``busybox`` would have millions.
    """
    found, count = list[Words](), 0
    for words in (each for command in survey.commands for each in _programs_in_one(command)):
        found.append(words)
        count += len(words)
        if count > MAX_WORDS:
            break
    return replace(survey, commands=tuple(found))


def _programs_in_one(words: Words) -> Iterator[Words]:
    yield words
    while base_name(words[0]) in _MANY_IN_ONE and len(words) > 1:
        words = words[1:]
        yield words


def only_wraps(program: str) -> bool:
    """Tell whether a program only runs the one that its operands name: ``sudo``, ``nice``."""
    return base_name(program) in _WRAPPERS


def leaves_a_program_open(survey: Survey) -> bool:
    """Tell whether a command may run a program or a script that the line does not name."""
    return any(
        _is_open(words) or _runs_a_module(words) or _is_fed(words) for words in survey.commands
    )


def scripts_of(words: Words) -> Iterator[tuple[Words, tuple[str, ...]]]:
    """Yield the interpreters of a command that are given a script, with what may be its name."""
    starts = range(len(words) if only_wraps(words[0]) or words[0] in _BUILTINS else 1)
    for at in starts:
        if base_name(words[at]) in _TAKE_SCRIPTS and (names := _script_in(words[at:])):
            yield words[at:], names


def _script_in(words: Words) -> tuple[str, ...]:
    """Return what may be the script; nothing if it is not told, or the interpreter gets code."""
    codes = "cs" if is_shell(words[0]) else "cemEpr" if base_name(words[0]) == "php" else "cemEp"
    guesses = list[str]()
    is_after_option = False
    for word in words[1:]:
        if word.startswith("-"):
            is_cluster = not word.startswith("--") and word[1:].isalpha()
            if word in _CODE_OPTIONS or (is_cluster and not set(codes).isdisjoint(word)):
                return ()
            is_after_option = True
        elif not is_after_option:
            return (*guesses, word) if word else ()
        else:
            # The value of the option, or the script.
            guesses.append(word)
            is_after_option = False
    return tuple(filter(None, guesses))


def _runs_a_module(words: Words) -> bool:
    """Tell of ``python3 -m name`` and the like: modules are looked for in places of their own."""
    return any(
        (module := _MODULES.get(base_name(word))) and any(map(module.match, words[at + 1 :]))
        for at, word in enumerate(_may_run(words))
    )


def _is_fed(words: Words) -> bool:
    """Tell of ``xargs sh`` and ``find -exec {} ;``: what they read or find is what runs."""
    for at, word in enumerate(_may_run(words)):
        name, given = base_name(word), words[at + 1 :]
        marks = _marks_of(name, given if name != "find" else ())
        if name in _RUN_ALL:
            return True
        if name == "find":
            starts = [place + 1 for place, word in enumerate(given) if word in _FEEDS_AT]
            programs = (_until_separator(given[start:]) for start in starts)
            if any(_may_run_the_fed(program, marks) for program in programs):
                return True
        elif name in _FEEDERS:
            program = _until_separator(_without_options(given))
            if _may_run_the_fed(program, marks) or (name == "parallel" and not program):
                return True
    return False


def _may_run_the_fed(program: Words, marks: re.Pattern[str]) -> bool:
    """Tell whether a program that is given more words takes them for a program or a script."""
    if not program or marks.search(program[0]):
        return bool(program)
    lines = (word for word in program[1:] if _may_be_a_line(word))
    if has_inner_lines(program) and any(
        marks.search(line) for line in (*lines, *_lines_of_shells(program))
    ):
        return True
    runs = [at for at, word in enumerate(program) if is_interpreter(word) or only_wraps(word)]
    return bool(runs) and all(map(marks.fullmatch, _operands(program[runs[-1] + 1 :])))


def _marks_of(name: str, given: Words) -> re.Pattern[str]:
    """Return what is replaced: by xargs ``%`` of ``-I%`` or ``-i%``, by parallel also ``{1.}``."""
    mark = _MARK
    for option, value in pairwise((*given, "")):
        if found := _MARK_OPTION.match(option):
            is_next = not found[1] and option.endswith("I")
            mark = found[1] or (value if is_next else "") or _MARK
            break
    others = [_MARK_OF_PARALLEL] if name == "parallel" else []
    return re.compile("|".join([re.escape(mark), *others]))


def _without_options(given: Words) -> Words:
    is_value = False
    for at, word in enumerate(given):
        if not (is_value or word.startswith("-")):
            return given[at:]
        is_value = (
            not is_value and re.fullmatch(r"-[adEILnPsj]|--(arg-file|jobs)", word) is not None
        )
    return ()


def _until_separator(given: Words) -> Words:
    return tuple(takewhile(lambda word: word not in _SEPARATORS, given))


def _is_open(words: Words) -> bool:
    name, *arguments = words
    if name in _BUILTINS or base_name(name) in _WRAPPERS | _OTHER_WRAPPERS:
        return "" in arguments
    is_after_option = False
    for word in arguments if can_spawn(name) else ():
        if word.startswith("-") or (isinstance(word, Expanded) and word.text.startswith("-")):
            is_after_option = True
        elif word and not is_after_option:
            # The script. What follows are its arguments.
            return False
        elif not word:
            return True
        else:
            is_after_option = False
    return False


def feeds_an_interpreter(survey: Survey) -> bool:
    """Tell whether a shell or the like is started without a script, so that it runs its input."""
    return any(
        is_interpreter(word) and (not _operands(words[at + 1 :]) or "-s" in words[at + 1 :])
        for words in survey.commands
        for at, word in enumerate(_may_run(words))
    )


def has_inner_lines(words: Words) -> bool:
    """Tell whether the command runs lines that its words have: ``sh -c '…'``."""
    takes_lines = base_name(words[0]) in _TAKE_LINES or any(map(is_shell, _may_run(words)))
    is_line_given = any(_may_be_a_line(word) for word in words[1:])
    return (takes_lines and is_line_given) or any(_lines_of_shells(words))


def _lines_of_shells(words: Words) -> Iterator[str]:
    """Yield what a shell is given after ``-c``, even one word. Options may come between."""
    for at, word in enumerate(_may_run(words)):
        is_line_next = is_value = False
        for given in words[at + 1 :] if is_shell(word) else ():
            if given.startswith(("-", "+")):
                is_line_next = is_line_next or _LINE_OPTION.match(given) is not None
                is_value = given[-1:] in {"o", "O"}
            elif is_line_next:
                yield from filter(None, [given])
                if not is_value:
                    break
                is_value = False


def _may_be_a_line(word: str) -> bool:
    return len(word.split()) > 1


def _behind_option(word: str) -> Iterator[str]:
    """Yield the lines in ``--command='sh a'``, ``-S'sh a'`` and ``ProxyCommand='sh a'``."""
    head, sign, value = word.partition("=")
    if word.startswith("-"):
        yield from filter(_may_be_a_line, [word[2:]] if not word.startswith("--") else [])
    if sign and not head[-1:].isspace():
        yield from filter(_may_be_a_line, [value])


def _operands(words: Words) -> Words:
    return tuple(word for word in words if word and not word.startswith("-"))


def _may_run(words: Words) -> Words:
    """The words of a command that may be programs which it starts."""
    is_runner = can_spawn(words[0]) or words[0] in _BUILTINS
    return words if is_runner else words[:1]


def _inner_lines(survey: Survey) -> Iterator[str]:
    """The texts that may be lines. What is printed or written before a shell may be piped to it."""
    is_for_a_shell = any(is_shell(word) for words in survey.commands for word in _may_run(words))
    for words in survey.commands:
        if is_for_a_shell or base_name(words[0]) in _TAKE_LINES:
            yield from filter(_may_be_a_line, words[1:])
        if can_spawn(words[0]):
            yield from (line for word in words[1:] for line in _behind_option(word))
        yield from (line for line in _lines_of_shells(words) if not _may_be_a_line(line))
    if is_for_a_shell:
        yield from survey.texts
