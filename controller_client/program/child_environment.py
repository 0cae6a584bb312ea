"""Builds the environment of a program from scratch: it gets nothing of the daemon's own.

A caller may add variables, but none that make another program load or run code of the caller's
choosing.
"""

import os
import pwd
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from controller_client.program.directory_guard import is_directory
from controller_client.protocol.messages import IoMode
from controller_client.system.process_tree import SESSION_COOKIE
from controller_client.system.start_failure import StartFailed, from_os_error

_LINUX_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DARWIN_PATH = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
# On pipes nobody sees colours or turns pages.
_TERMINAL_OF: dict[IoMode, dict[str, str]] = {
    "pty": {"TERM": "xterm-256color"},
    "pipe": {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat"},
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFUSED = re.compile(
    r"LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|MALLOC_.*|LOCPATH|NLSPATH|RESOLV_HOST_CONF|HOSTALIASES"
    r"|BASH_ENV|BASH_FUNC.*|BASHOPTS|SHELLOPTS|ENV|IFS|PATH|CDPATH|PS4|PROMPT_COMMAND|ZDOTDIR"
    r"|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|GIT_.*|HOLDLINE_.*"
)
_HARMLESS_NAMES = (
    "PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONHASHSEED "
    "GIT_TERMINAL_PROMPT"
    " GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL "
    "GIT_COMMITTER_DATE NODE_ENV"
)
_HARMLESS = frozenset(_HARMLESS_NAMES.split())


@dataclass(frozen=True)
class Account:
    """The user that programs run as."""

    name: str
    home: str
    shell: str


def own_account() -> Account:
    """Return the user that this process is, or acts as."""
    return account_of(os.geteuid())


@lru_cache(maxsize=2)
def account_of(uid: int) -> Account:
    """Return the user of a number; asked once, because the answer may come over a network.

    Raises OSError if no descriptor is left to ask.
    """
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # The library says so, too, where no descriptor is left to read the answer. This says that.
        Path("/dev/null").open("rb").close()
        return Account(str(uid), "/", "/bin/sh")
    return Account(entry.pw_name, entry.pw_dir or "/", entry.pw_shell or "/bin/sh")


def search_path() -> str:
    """Return the PATH of every session's program."""
    return _DARWIN_PATH if sys.platform == "darwin" else _LINUX_PATH


def build_environment(
    session_id: str, additions: Mapping[str, str], io_mode: IoMode = "pty"
) -> dict[str, str]:
    """Return the whole environment of a session's program.

    Raises StartFailed: ENV_NOT_ALLOWED names the variable, never its value.
    """
    for name, value in additions.items():
        _check_addition(name, value)
    try:
        account = own_account()
    except OSError as error:
        raise from_os_error(error, "the user cannot be looked up") from None
    return {
        "PATH": search_path(),
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
        "LANG": "C.UTF-8",
        **_TERMINAL_OF[io_mode],
        **additions,
        SESSION_COOKIE: session_id,
    }


def default_terminal(io_mode: IoMode) -> str:
    """Return the TERM of a program for which the caller names none."""
    return _TERMINAL_OF[io_mode]["TERM"]


def default_cwd(environment: Mapping[str, str]) -> str:
    """Return HOME, or the root directory if HOME is none, or closed to this user.

    Raises StartFailed if nobody could look.
    """
    home = environment["HOME"]
    return home if is_directory(home) else "/"


def _check_addition(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise StartFailed(
            "ENV_NOT_ALLOWED",
            "the name of an environment variable consists of letters, digits and underscores",
        )
    if name not in _HARMLESS and _REFUSED.fullmatch(name):
        raise StartFailed(
            "ENV_NOT_ALLOWED",
            f"the environment variable {name} may not be set: it changes which code programs run",
        )
    if "\0" in value:
        raise StartFailed(
            "ENV_NOT_ALLOWED", f"the environment variable {name} contains a NUL character"
        )
