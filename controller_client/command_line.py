"""From a command line to what the kernel is given: a plain command runs by itself, anything with shell syntax runs in a shell.

A plain command avoids a process between us and the program, and a missing program is a typed error, not exit code 127.
"""

import errno
import os
import shlex
import stat
from pathlib import Path

from controller_client.start_failure import StartFailed, program_not_executable, program_not_found

_SHELLS = ("/bin/bash", "/bin/sh")
# Outside quotes any of these means something to a shell; inside double quotes three of them still do.
_SYNTAX = frozenset("|&;<>()$`\\*?[]{}!~#=%\n\r\0")
_SYNTAX_IN_DOUBLE_QUOTES = frozenset("$`\\!\n\r\0")
_KEYWORDS = "if then else elif fi case esac for select while until do done in function time coproc"
# Builtins that have no program of the same meaning, or whose point is the shell itself.
_BUILTINS = (
    ". : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable eval exec exit"
    " export fc fg getopts hash help history jobs let local logout mapfile popd pushd read readarray readonly return set shift shopt"
    " source suspend times trap type typeset ulimit umask unalias unset wait"
)
_SHELL_WORDS = frozenset(f"{_KEYWORDS} {_BUILTINS}".split())


def argv_for(command: str) -> list[str]:
    """What to execute for ``command``: its words if it is a plain command, else a shell that runs it.

    Raises StartFailed for an empty command or one with a NUL.
    """
    if "\0" in command:
        raise StartFailed("START_FAILED", "a command cannot contain a NUL character", errno.EINVAL)
    if not command.strip():
        raise StartFailed("START_FAILED", "the command is empty", errno.EINVAL)
    if not _has_shell_syntax(command):
        words = shlex.split(command)
        if words and words[0] and words[0] not in _SHELL_WORDS:
            return words
    return [_shell(), "-c", command]


def resolve_program(program: str, path: str, cwd: str) -> str:
    """Absolute path of ``program``: looked up on ``path`` (PATH's syntax), or relative to ``cwd`` if it has a slash.

    Raises StartFailed, PROGRAM_NOT_EXECUTABLE only if nothing better was found.
    """
    if "/" in program:
        candidates = [str(Path(cwd, program))]
    else:
        candidates = [str(Path(cwd, directory, program)) for directory in path.split(os.pathsep) if directory]
    refused: int | None = None
    for candidate in candidates:
        problem = _why_not_runnable(candidate)
        if problem is None:
            return candidate
        if problem not in {errno.ENOENT, errno.ENOTDIR}:
            refused = refused or problem
    if refused is not None:
        raise program_not_executable(program, refused)
    raise program_not_found(program)


def _has_shell_syntax(command: str) -> bool:
    """Whether a shell would do more than split words and remove quotes; unbalanced quotes are the shell's to complain about."""
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
    return next((shell for shell in _SHELLS if os.access(shell, os.X_OK)), _SHELLS[-1])


def _why_not_runnable(candidate: str) -> int | None:
    """None if the file can be executed, else the errno of the reason."""
    try:
        status = Path(candidate).stat()
    except OSError as error:
        return error.errno or errno.ENOENT
    if not stat.S_ISREG(status.st_mode):
        return errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EACCES
    # access() says yes to root for any file that is executable by anybody, as the kernel does.
    return None if os.access(candidate, os.X_OK) else errno.EACCES
