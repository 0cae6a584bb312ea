"""A look for commands of a line that can change what another command of it runs.

In ``git pull && ./deploy.sh`` and ``curl URL | sh`` it can: what runs in the end is not what was
there when the line started. The result is for telling a person, never for running.
"""

from typing import Final

from controller_client.command_policy.inner_lines import (
    feeds_an_interpreter,
    has_inner_lines,
    surveyed_within,
)
from controller_client.command_policy.programs import base_name
from controller_client.command_policy.shell_grammar import Words

# They only pass on what the line or its files say, or set what the shell itself knows. Their output
# is an act if it goes into a file.
_PASSING: Final = frozenset(
    {":", "[", "[[", "base32", "base64", "bzcat", "cat", "cd", "chdir", "cut", "echo", "egrep"}
    | {"exit", "export", "false", "fgrep", "fold", "grep", "gunzip", "head", "local", "nl", "paste"}
    | {"popd", "printf", "pushd", "rev", "set", "shift", "shopt", "sleep", "tac", "tail", "test"}
    | {"tr", "true", "ulimit", "umask", "uniq", "unset", "wait", "wc", "xxd", "xzcat", "zcat"}
)
# They tell of the host, which is harmless unless a shell is given that to run.
_TELLING: Final = frozenset(
    {
        "basename",
        "date",
        "df",
        "dirname",
        "du",
        "expr",
        "hostname",
        "id",
        "ls",
        "nproc",
        "ps",
        "pwd",
    }
    | {"pwd", "readlink", "realpath", "seq", "stat", "type", "uname", "uptime", "whoami", "which"}
)
_DEVICES: Final = ("/dev/", "/proc/")


def may_change_what_it_runs(command: str) -> bool:
    """Tell whether one command of the line may download, make or change what another one runs."""
    survey = surveyed_within(command, "/")
    harmless = _PASSING if feeds_an_interpreter(survey) else _PASSING | _TELLING
    acting = [words for words in survey.commands if _acts(words, harmless)]
    opened = [*survey.reads, *(word for words in survey.commands for word in words[1:])]
    has_foreign_text = any(path.startswith(_DEVICES) for path in opened if path != "/dev/null")
    can_one_do = has_foreign_text or not survey.is_straight
    # What an acting command writes is no second act, but what ``cat`` or ``echo`` writes is one.
    written = [words for words in survey.writes if not (any(words[:1]) and _acts(words, harmless))]
    return bool(acting) and len(acting) + len(written) > (0 if can_one_do else 1)


def _acts(words: Words, harmless: frozenset[str]) -> bool:
    """True of a command that may write files or fetch something. Its inner lines are others."""
    return base_name(words[0]) not in harmless and not has_inner_lines(words)
