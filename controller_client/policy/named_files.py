"""The files that a command line would run, as a person sees them before they approve it.

Only what can be named is named: the programs of each simple command, and the script that a program
is given which runs others. They are looked for in every directory that the line may go to, and in
the lines inside of it too. The same look is taken again when the command starts.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import file_digest
from itertools import product
from pathlib import Path
from typing import Final

from controller_client.command_policy.directories import directories_of
from controller_client.command_policy.inner_lines import feeds_an_interpreter, surveyed_within
from controller_client.command_policy.programs import base_name, can_spawn, is_interpreter
from controller_client.command_policy.shell_grammar import Words
from controller_client.command_policy.survey import Survey
from controller_client.program.child_environment import own_account, search_path
from controller_client.program.command_line import resolve_program
from controller_client.protocol.limits import MAX_NAMED_FILES
from controller_client.protocol.messages import Failure, NamedFile
from controller_client.system.absence import raise_unknown
from controller_client.system.start_failure import StartFailed, from_os_error

MAX_BYTES: Final = 64 * 1024 * 1024
"""No larger file is read."""


def named_files(command: str, cwd: str | None) -> list[NamedFile]:
    """Return the files that ``command`` names when it is started in ``cwd``, in their order.

    Raises OSError if one is there and cannot be read now, for want of a descriptor, say.
    """
    survey = surveyed_within(command)
    places = directories_of(survey, str(Path(own_account().home, cwd or ""))).paths
    look = _HostFiles()
    found: dict[str, NamedFile] = {}
    for path in _paths(survey, places, look):
        if path not in found:
            if len(found) == MAX_NAMED_FILES:
                break
            found[path] = NamedFile(path=path, sha256=_digest(path))
    return list(found.values())


def why_changed(command: str, cwd: str | None, approved: Sequence[NamedFile]) -> Failure | None:
    """Return the refusal of a start whose files are not those that were approved, else None."""
    try:
        now = named_files(command, cwd)
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

    def __init__(self) -> None:
        self.program = cache(_program)
        self.plain_file = cache(_plain_file)


def _paths(survey: Survey, places: Sequence[str], look: _HostFiles) -> Iterator[str]:
    for words, directory in product(survey.commands, places):
        yield from _paths_of(words, directory, look)
    if not any(can_spawn(words[0]) for words in survey.commands):
        return
    # They read what the line redirects to them, and an interpreter may be piped what others read.
    read = [*survey.reads]
    if feeds_an_interpreter(survey):
        read += [word for words in survey.commands for word in words[1:]]
    for word, directory in product(read, places):
        if path := look.plain_file(word, directory):
            yield path


def _paths_of(words: Words, directory: str, look: _HostFiles) -> Iterator[str]:
    """The files of one command. One that is not found is a builtin, which may run others too."""
    program = look.program(words[0], directory)
    if program:
        yield program
    if program and not (can_spawn(base_name(words[0])) or can_spawn(program)):
        return
    yield from _script_of(words, directory, look)
    if is_interpreter(words[0]):
        return
    for at, word in enumerate(words):
        if at and (other := look.program(word, directory)):
            yield other
            if can_spawn(word):
                yield from _script_of(words[at:], directory, look)


def _script_of(words: Words, directory: str, look: _HostFiles) -> Iterator[str]:
    """The first plain file that a program is given, and those before it that options name.

    A plain file behind an option may be its value or the script, so the next one counts as well.
    """
    is_after_option = False
    for word in words[1:]:
        if word.startswith("-"):
            is_after_option = True
            named = (word[2:], word.partition("=")[2])
            yield from filter(None, (look.plain_file(value, directory) for value in named))
        elif path := look.plain_file(word, directory):
            yield path
            if not is_after_option:
                return
            is_after_option = False


def _program(name: str, directory: str) -> str:
    """The path of a program, without links; empty if nothing that can run has this name.

    Raises OSError if nobody could look.
    """
    if not name or name.startswith("-"):
        return ""
    try:
        return str(Path(resolve_program(name, search_path(), directory)).resolve())
    except StartFailed as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
        return ""


def _plain_file(name: str, directory: str) -> str:
    """The path of a plain file, without links; empty if there is none of this name."""
    try:
        path = Path(directory, name)
        return str(path.resolve()) if name and path.is_file() else ""
    except ValueError:
        return ""
    except OSError as error:
        raise_unknown(error)
        return ""


def _digest(path: str) -> str:
    try:
        with Path(path).open("rb") as opened:
            if Path(path).stat().st_size > MAX_BYTES:
                return ""
            return file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise_unknown(error)
        return ""
