"""The files that a command line would run, as a person sees them before they approve it.

Only what can be named is named: the programs of each simple command, and the script that a program
is given which runs others. They are looked for in every directory that the line may go to, and in
the lines inside of it too. The same look is taken again when the command starts.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from errno import EACCES, EPERM
from fnmatch import fnmatchcase
from functools import cache, partial
from hashlib import file_digest
from itertools import islice, product
from pathlib import Path
from typing import Final, NamedTuple

from controller_client.command_policy.directories import (
    MAX_DIRECTORIES,
    directories_of,
    line_of,
    loads_code,
    start_of,
)
from controller_client.command_policy.inner_lines import (
    feeds_an_interpreter,
    only_wraps,
    scripts_of,
    surveyed_within,
)
from controller_client.command_policy.programs import base_name, can_spawn, is_interpreter, is_shell
from controller_client.command_policy.shell_grammar import Words
from controller_client.command_policy.spelling import MAX_PATTERNS, is_pattern
from controller_client.command_policy.survey import Survey
from controller_client.program.child_environment import own_account, search_path
from controller_client.program.command_line import resolve_program
from controller_client.program.directory_guard import start_directory
from controller_client.protocol.limits import MAX_NAMED_FILES
from controller_client.protocol.messages import Failure, NamedFile
from controller_client.system.absence import raise_unknown
from controller_client.system.files.plain_file import open_plain
from controller_client.system.start_failure import StartFailed, from_os_error

MAX_BYTES: Final = 64 * 1024 * 1024
"""No larger file is read."""
MAX_ENTRIES: Final = 10_000
"""A pattern is not matched with the names of a larger directory."""
_RUN_ALL: Final = frozenset({"run-parts"})
"""They run every file of the directories that they are given."""
_MAKEFILES: Final = ("BSDmakefile", "GNUmakefile", "makefile", "Makefile")
_PACKAGE: Final = ("package.json",)
_READ_UNASKED: Final = {
    **dict.fromkeys(("make", "bmake", "gmake", "gnumake", "pmake", "remake"), _MAKEFILES),
    **dict.fromkeys(("bun", "npm", "npx", "pnpm", "yarn"), _PACKAGE),
    "ant": ("build.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "just": ("justfile", "Justfile", ".justfile"),
    "mvn": ("pom.xml",),
    "ninja": ("build.ninja",),
    "nox": ("noxfile.py",),
    "rake": ("rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"),
    "scons": ("SConstruct", "Sconstruct", "sconstruct"),
    "tox": ("tox.ini",),
}
"""The files of a directory that tell these programs what to run."""
_FIRST_LINE_BYTES: Final = 256
"""The kernel reads no more of a script to find its interpreter."""
_MAX_MATCHES: Final = 32
_MAX_SIGNS: Final = 4


class Surroundings(NamedTuple):
    """Says where the files that a line names are looked for.

    ``home`` is that of the user of programs. ``search_paths`` are those on which programs may be
    looked up, ``roots`` the directories in which they may start.
    """

    home: str
    search_paths: tuple[str, ...]
    roots: Sequence[Sequence[str]] = ()

    def start(self, cwd: str | None) -> str:
        """Return the directory in which a program starts. Raises OSError if nobody could look."""
        if cwd:
            return str(Path(self.home, cwd))
        default = self.home if _may_be_directory(self.home) else "/"
        return start_directory(None, default, self.roots) if self.roots else default


def named_files(
    command: str, cwd: str | None, around: Surroundings | None = None
) -> list[NamedFile]:
    """Return the files that ``command`` names when it is started in ``cwd``, in their order.

    ``around`` None: those of the daemon's own user. Raises OSError if a file is there and cannot be
    read now, for want of a descriptor, say.
    """
    around = around or Surroundings(own_account().home, (search_path(),))
    survey = surveyed_within(command, around.home)
    places = directories_of(survey, around.start(cwd)).paths
    look = _HostFiles(around.search_paths)
    found: dict[str, NamedFile] = {}
    for path in _with_interpreters(_paths(survey, places, look), places, look):
        if path not in found:
            if len(found) == MAX_NAMED_FILES:
                break
            # Spelled here as in a frame, because what comes back is compared.
            told = path.encode(errors="backslashreplace").decode()
            found[path] = NamedFile(path=told, sha256=_digest(path))
    return list(found.values())


def why_changed(
    command: str,
    place: tuple[str | None, Mapping[str, str]],
    approved: Sequence[NamedFile],
    around: Surroundings | None = None,
) -> Failure | None:
    """Return the refusal of a start whose files are not those that were approved, else None.

    ``place``: the directory and the variables that the caller gives.
    """
    try:
        now = named_files(line_of(command, place[1]), start_of(*place), around)
    except OSError as error:
        return from_os_error(error, "the files of the approved command cannot be read").failure
    if now == list(approved):
        return None
    seen = {file.path: file for file in approved}
    other = next((file.path for file in now if seen.get(file.path) != file), "a file that it names")
    return Failure(
        code="CHANGED_SINCE_APPROVAL",
        message=f"since this command was approved, {other!a} has changed; nothing was started",
    )


class _HostFiles:
    """One look for the host's files, which asks for each name in each directory once."""

    def __init__(self, search_paths: Sequence[str]) -> None:
        self.programs = cache(partial(_programs, search_paths))
        self.search_paths = search_paths
        self.plain_file = cache(_plain_file)
        self.matches = cache(self._matches)
        self._patterns = 0

    def script(self, word: str, directory: str, interpreter: str) -> str:
        """The plain file of a script. A shell looks for it on its path as well."""
        is_searched = is_shell(interpreter) and word and "/" not in word
        paths = self.search_paths if is_searched else ()
        places = [place for path in paths for place in path.split(os.pathsep) if place]
        return next(filter(None, (self.plain_file(word, at) for at in (directory, *places))), "")

    def _matches(self, word: str, directory: str) -> tuple[str, ...]:
        """The names that a pattern stands for in a directory; the word itself if it is none."""
        if not is_pattern(word) or self._patterns >= MAX_PATTERNS * MAX_DIRECTORIES:
            return (word,)
        self._patterns += 1
        return _names_like(word, directory)


def _with_interpreters(
    paths: Iterable[str], places: Sequence[str], look: _HostFiles
) -> Iterator[str]:
    """Yield the paths, and behind each what its first line makes run, which may be a script too.

    Each file is looked into once, however many scripts name it.
    """
    seen: set[str] = set()
    for path in paths:
        yield path
        todo = [path]
        while todo:
            script = todo.pop()
            words = () if script in seen else _interpreter_of(script)
            seen.add(script)
            for directory in places if words else ():
                named = list(_paths_of((*words, script), directory, look))
                todo += named
                yield from (each for each in named if each != script)


def _interpreter_of(path: str) -> Words:
    """Return the words of a script's first line, behind ``#!``; none for any other file."""
    try:
        with open_plain(Path(path)) as opened:
            begin, _, _ = opened.read(_FIRST_LINE_BYTES).partition(b"\n")
    except ValueError:
        return ()
    except OSError as error:
        raise_unknown(error)
        return ()
    if not begin.startswith(b"#!"):
        return ()
    # The interpreter is a path, also without a stroke in it: no search path is asked for it.
    words = [os.fsdecode(word) for word in begin[2:].split()]
    if words and "/" not in words[0]:
        words[0] = f"./{words[0]}"
    return tuple(words)


def _paths(survey: Survey, places: Sequence[str], look: _HostFiles) -> Iterator[str]:
    for words, directory in product(survey.commands, places):
        matched = product(*(look.matches(word, directory) for word in words))
        for told in islice(matched, _MAX_MATCHES):
            yield from _paths_of(told, directory, look)
    for words in survey.commands:
        for given, names in () if any(map(is_pattern, words)) else scripts_of(words):
            if not any(any(_script_of(given, directory, look)) for directory in places):
                # The interpreter may find it under another name: ``node deploy`` runs deploy.js.
                yield from (_unfound(name, places[0]) for name in names if name)
    if not any(can_spawn(words[0]) for words in survey.commands):
        return
    # They read what the line redirects to them, and an interpreter may be piped what others read.
    read = [*survey.reads, *(value for name, value in survey.values if loads_code(name))]
    if feeds_an_interpreter(survey):
        read += [word for words in survey.commands for word in words[1:]]
    for word, directory in product(read, places):
        found = (look.plain_file(each, directory) for each in look.matches(word, directory))
        yield from filter(None, found)


def _paths_of(words: Words, directory: str, look: _HostFiles) -> Iterator[str]:
    """The files of one command. One that is not found is a builtin, which may run others too."""
    programs = look.programs(words[0], directory)
    yield from programs
    if programs and not any(map(can_spawn, (base_name(words[0]), *programs))):
        return
    operands = [] if is_interpreter(words[0]) else list(enumerate(words))[1:]
    others = [(at, path) for at, word in operands for path in look.programs(word, directory)]
    # What ``sudo tail log`` names is read by a program that runs nothing.
    is_for_another = only_wraps(words[0]) and others and not can_spawn(words[others[0][0]])
    yield from _script_of(words[: others[0][0]] if is_for_another else words, directory, look)
    for at, path in others:
        yield path
        if can_spawn(words[at]):
            yield from _script_of(words[at:], directory, look)


def _script_of(words: Words, directory: str, look: _HostFiles) -> Iterator[str]:
    """The first plain file that a program is given, and those before it that options name.

    A plain file behind an option may be its value or the script, so the next one counts as well.
    Before them come those that the program looks for by itself.
    """
    yield from _found_unasked(words, directory, look)
    is_after_option = False
    for word in words[1:]:
        if word.startswith("-") or is_after_option:
            # Also in ``--action=exec=./a`` and ``-c pager=./a``.
            named = [word[2:] if word.startswith("-") else "", *_behind_signs(word)]
            yield from filter(None, (look.plain_file(value, directory) for value in named))
        if word.startswith("-"):
            is_after_option = True
        elif path := look.script(word, directory, words[0]):
            yield path
            if not is_after_option:
                return
            is_after_option = False


def _found_unasked(words: Words, directory: str, look: _HostFiles) -> Iterator[str]:
    """The ``Makefile`` that ``make`` reads, and what is in the directory of ``run-parts``."""
    name = base_name(words[0])
    names = _READ_UNASKED.get(name, ())
    if name in _RUN_ALL:
        names = tuple(f"{word}/*" for word in words[1:] if word and not word.startswith("-"))
    for told in (each for name in names for each in look.matches(name, directory)):
        yield from filter(None, [look.plain_file(told, directory)])


def _behind_signs(word: str) -> list[str]:
    parts = word.split("=", _MAX_SIGNS)
    return ["=".join(parts[at:]) for at in range(1, len(parts))]


def _names_like(word: str, directory: str) -> tuple[str, ...]:
    head, stroke, pattern = word.rpartition("/")
    try:
        with os.scandir(Path(directory, head + stroke)) as entries:
            names = [entry.name for entry in islice(entries, MAX_ENTRIES + 1)]
    except ValueError:
        return (word,)
    except OSError as error:
        raise_unknown(error)
        return (word,)
    if len(names) > MAX_ENTRIES:
        return (word,)
    is_hidden = pattern.startswith(".")
    found = [name for name in names if is_hidden or not name.startswith(".")]
    told = sorted(head + stroke + name for name in found if fnmatchcase(name, pattern))
    return tuple(told[:_MAX_MATCHES]) or (word,)


def _programs(search_paths: Sequence[str], name: str, directory: str) -> tuple[str, ...]:
    """The paths, without links, of what may run under this name; none if nothing can.

    A program that is closed to the daemon may run as another user: it counts, and so does the one
    that would run without it. Raises OSError if nobody could look.
    """
    if not name or name.startswith("-"):
        return ()
    found: list[Path] = []
    for path in search_paths:
        try:
            program = Path(resolve_program(name, path, directory))
        except StartFailed as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from error
            program = None
        for place in [""] if "/" in name else filter(None, path.split(os.pathsep)):
            candidate = Path(directory, place, name)
            if candidate == program:
                break
            if _is_closed_program(candidate):
                found.append(candidate)
        found += [program] if program else []
    return tuple(dict.fromkeys(str(path.resolve()) for path in found))


def _is_closed_program(path: Path) -> bool:
    """Tell of a file that we cannot run whether others may."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return _is_closed(path)
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _plain_file(name: str, directory: str) -> str:
    """The path of a plain file, without links; empty if there is none of this name.

    What is closed to the daemon may be one.
    """
    path = Path(directory, name)
    try:
        is_there = bool(name) and path.is_file()
    except ValueError:
        return ""
    except OSError as error:
        raise_unknown(error)
        is_there = False
    return str(path.resolve()) if is_there or (name and _is_closed(path)) else ""


def _unfound(name: str, directory: str) -> str:
    try:
        return str(Path(directory, name).resolve())
    except (OSError, ValueError):
        return str(Path(directory, name))


def _is_closed(path: Path) -> bool:
    """Tell whether we may not know if something is there."""
    try:
        path.stat()
    except ValueError:
        return False
    except OSError as error:
        raise_unknown(error)
        is_listed = not is_pattern(path.name) or os.access(path.parent, os.R_OK)
        is_unlisted = not is_listed and os.access(path.parent, os.F_OK)
        return error.errno in {EACCES, EPERM} or is_unlisted
    return False


def _may_be_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except OSError:
        return _is_closed(Path(path))


def _digest(path: str) -> str:
    try:
        with open_plain(Path(path)) as opened:
            if os.fstat(opened.fileno()).st_size > MAX_BYTES:
                return ""
            return file_digest(opened, "sha256").hexdigest()
    except ValueError:
        # No file has a name with a NUL.
        return ""
    except OSError as error:
        raise_unknown(error)
        return ""
