"""The arguments and files of a call, and its notices, which people see before they answer.

Every place where a person can approve shows the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controller_client.command_policy.directories import directories, loads_code
from controller_client.command_policy.effects import may_change_what_it_runs
from controller_client.protocol.limits import MAX_NAMED_FILES
from projects.models import Approval
from projects.policy.call_risk import STARTERS, WAITING_ARGUMENTS
from projects.sessions.approvals.asking import arguments_of

FIRST_ARGUMENTS: Final = ("command", "input_text", "keys", "input", "secret")
"""The arguments that say what is run or typed."""
NOT_SHOWN: Final = "cannot be shown: the server has no key for it any more"
NO_FILE: Final = "the host named no file: what runs is not compared"
_HANDLES: Final = frozenset({"session_id", "sessionId"})
_GOES_UNSEEN: Final = (
    "The line goes to another directory, sets where programs or their files are looked for, or "
    "spells a program or script in a way that cannot be told from the line, it names too many "
    "files, or the host could not find or read one of them. It may run other files than those "
    "above, which are then not compared."
)
_CHANGES_ITSELF: Final = (
    "A command of this line can download, make or change what another one runs. The files above "
    "are compared when the line starts, and not again."
)


@dataclass(frozen=True, slots=True)
class File:
    """A file that a start may run. ``content`` says which content of it is compared."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The files that a call may run, and notices: sentences about what is not compared.

    ``names_no_file``: the call starts a program, and its host named no file of it.
    """

    files: tuple[File, ...]
    notices: tuple[str, ...]
    names_no_file: bool


def arguments_shown(approval: Approval) -> Iterator[tuple[str, str]]:
    """The arguments as texts: what is run or typed first, lists and objects one by one.

    Nothing is made visible yet. The arguments of one attempt are no part of the question, and the
    session is shown by its own words.
    """
    given = arguments_of(approval)
    if given is None:
        yield "call", NOT_SHOWN
        return
    quiet = WAITING_ARGUMENTS if approval.session_id is None else WAITING_ARGUMENTS | _HANDLES
    for name in sorted(given.keys() - quiet, key=lambda name: (name not in FIRST_ARGUMENTS, name)):
        value = given[name]
        if isinstance(value, Mapping):
            yield from ((f"{name}: {key}", str(one)) for key, one in value.items())
        elif isinstance(value, list):
            yield from ((f"{name} {place}", str(one)) for place, one in enumerate(value, 1))
        else:
            yield name, str(value)


def disclosure_of(approval: Approval) -> Disclosure:
    """The files and notices of a call. The paths are the host's, not made visible."""
    files = tuple(
        File(path, f"SHA-256 {digest}" if digest else "content not read")
        for path, digest in approval.files or ()
    )
    is_start = approval.tool in STARTERS
    return Disclosure(files, tuple(_notices(approval, is_start)), is_start and not files)


def _notices(approval: Approval, is_start: bool) -> Iterator[str]:
    if count := approval.live_programs:
        others = f"{count} other active session{'' if count == 1 else 's'}"
        yield f"{others} of this caller could change files before you answer."
    given = (arguments_of(approval) or {}) if is_start else {}
    if is_start and _goes_unseen(approval, given):
        yield _GOES_UNSEEN
    if is_start and may_change_what_it_runs(str(given.get("command", ""))):
        yield _CHANGES_ITSELF


def _goes_unseen(approval: Approval, given: dict[str, object]) -> bool:
    """True if a start may run a file that its line does not tell, or that its host did not read."""
    is_told = directories(str(given.get("command", "")), "/").are_all
    env = given.get("env")
    is_elsewhere = any(
        name == "HOME" or loads_code(name) for name in (env if isinstance(env, dict) else ())
    )
    files = approval.files or ()
    is_bounded = len(files) >= MAX_NAMED_FILES or not all(digest for _, digest in files)
    return is_bounded or is_elsewhere or not is_told
