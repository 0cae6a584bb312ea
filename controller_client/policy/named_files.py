"""The files that a command line would run, as a person sees them before they approve it.

Only what can be named is named: the program of each simple command, and the first plain file among
the arguments of a program that runs other programs, such as a script. They are looked for in every
directory that the line may go to. The same look is taken again when the command starts.
"""

from collections.abc import Iterator, Sequence
from hashlib import file_digest
from itertools import product
from pathlib import Path
from typing import Final

from controller_client.command_policy.directories import directories_of
from controller_client.command_policy.programs import base_name, can_spawn
from controller_client.command_policy.shell_grammar import Words, surveyed
from controller_client.program.child_environment import own_account, search_path
from controller_client.program.command_line import resolve_program
from controller_client.protocol.messages import Failure, NamedFile
from controller_client.system.absence import raise_unknown
from controller_client.system.start_failure import StartFailed, from_os_error

MAX_FILES: Final = 16
MAX_BYTES: Final = 64 * 1024 * 1024
"""No larger file is read."""


def named_files(command: str, cwd: str | None) -> list[NamedFile]:
    """Return the files that ``command`` names when it is started in ``cwd``, in their order.

    Raises OSError if one is there and cannot be read now, for want of a descriptor, say.
    """
    survey = surveyed(command)
    places = directories_of(survey, str(Path(own_account().home, cwd or ""))).paths
    found: dict[str, NamedFile] = {}
    for words, directory in product(survey.commands, places):
        for path in _paths_of(words, directory):
            if path not in found and len(found) < MAX_FILES:
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


def _paths_of(words: Words, directory: str) -> Iterator[str]:
    try:
        program = resolve_program(words[0], search_path(), directory)
    except StartFailed:
        # A builtin, or nothing that could run. The builtin ``.`` reads a script as well.
        program = ""
    if program:
        yield str(Path(program).resolve())
    if program and not (can_spawn(base_name(words[0])) or can_spawn(program)):
        return
    for word in words[1:]:
        if word and not word.startswith("-") and _is_plain(path := Path(directory, word)):
            yield str(path.resolve())
            return


def _is_plain(path: Path) -> bool:
    try:
        return path.is_file()
    except ValueError:
        return False
    except OSError as error:
        raise_unknown(error)
        return False


def _digest(path: str) -> str:
    try:
        with Path(path).open("rb") as opened:
            if Path(path).stat().st_size > MAX_BYTES:
                return ""
            return file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise_unknown(error)
        return ""
