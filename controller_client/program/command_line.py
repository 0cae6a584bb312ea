"""Turns a command line into arguments: a plain command runs by itself, others in a shell.

A plain command needs no shell between the holder and the program, and a missing program is a typed
error, not exit code 127.
"""

import errno
import os
import shlex
import stat
from pathlib import Path

from controller_client.system.absence import is_shortage
from controller_client.system.start_failure import (
    StartFailed,
    from_os_error,
    program_not_executable,
    program_not_found,
)

_SHELLS = ("/bin/bash", "/bin/sh")
# Characters that mean something to a shell outside quotes, and those that still do so inside double
# quotes.
_SYNTAX = frozenset("|&;<>()$`\\*?[]{}!~#%\n\r\0")
_SYNTAX_IN_DOUBLE_QUOTES = frozenset("$`\\!\n\r\0")
_KEYWORDS = "if then else elif fi case esac for select while until do done in function time coproc"
# Builtins that have no program of the same meaning, or whose point is the shell itself.
_BUILTINS = (
    ". : alias bg bind break builtin caller cd command compgen complete compopt continue declare "
    "dirs disown enable eval exec exit"
    " export fc fg getopts hash help history jobs let local logout mapfile popd pushd read "
    "readarray readonly return set shift shopt"
    " source suspend times trap type typeset ulimit umask unalias unset wait"
)
_SHELL_WORDS = frozenset(f"{_KEYWORDS} {_BUILTINS}".split())


def argv_for(command: str) -> list[str]:
    """Return the words of a plain ``command``, or the arguments of a shell that runs it.

    Raises StartFailed for an empty command or one with a NUL.
    """
    if "\0" in command:
        raise StartFailed("START_FAILED", "a command cannot contain a NUL character", errno.EINVAL)
    if not command.strip():
        raise StartFailed("START_FAILED", "the command is empty", errno.EINVAL)
    if not _has_shell_syntax(command):
        words = shlex.split(command)
        # Only in front of a command is a word with "=" an assignment.
        if words[0] and words[0] not in _SHELL_WORDS and "=" not in words[0]:
            return words
    return [_shell(), "-c", command]


def resolve_program(program: str, path: str, cwd: str) -> str:
    """Return the absolute path of ``program``.

    It is looked up on ``path`` (PATH's syntax), or relative to ``cwd`` if it has a slash. Raises
    StartFailed: PROGRAM_NOT_EXECUTABLE only if nothing better was found, and RESOURCE_EXHAUSTED if
    nobody could look.
    """
    directories = ["."] if "/" in program else list(filter(None, path.split(os.pathsep)))
    refusals: list[int] = []
    for candidate in (str(Path(cwd, directory, program)) for directory in directories):
        problem = _why_not_runnable(candidate)
        if problem is None:
            return candidate
        if problem not in {errno.ENOENT, errno.ENOTDIR}:
            refusals.append(problem)
    if refusals:
        raise program_not_executable(program, refusals[0])
    raise program_not_found(program)


def _has_shell_syntax(command: str) -> bool:
    """Return whether a shell would do more than split words and remove quotes.

    Unbalanced quotes count, too: the shell is to complain about them.
    """
    quote = ""
    for character in command:
        if quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _SYNTAX_IN_DOUBLE_QUOTES:
                return True
        elif character in "'\"":
            quote = character
        elif character in _SYNTAX:
            return True
    return bool(quote)


def _shell() -> str:
    return next((shell for shell in _SHELLS if _may_execute(shell)), _SHELLS[-1])


def _why_not_runnable(candidate: str) -> int | None:
    """Return None if the file can be executed, else the errno of the reason.

    Raises StartFailed if nobody could look.
    """
    try:
        status = Path(candidate).stat()
    except ValueError:  # no file has a name with a NUL
        return errno.ENOENT
    except OSError as error:
        if is_shortage(error):
            raise from_os_error(error, "the program cannot be looked for") from error
        return error.errno or errno.ENOENT
    if not stat.S_ISREG(status.st_mode):
        return errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EACCES
    return None if _may_execute(candidate) else errno.EACCES


def _may_execute(file: str) -> bool:
    # For root the answer is yes for any file that anybody may execute, as it is the kernel's.
    # Not the real user: a holder may act as another one.
    return os.access(file, os.X_OK, effective_ids=os.access in os.supports_effective_ids)
