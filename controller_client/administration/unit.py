"""The systemd unit of an installation, made from the one in ``deploy``.

Its first line is a mark: the digest of the other lines. A unit that does not have the digest of its
mark was changed by a person, or was written before there were marks.
"""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from controller_client.administration.installation import Installation
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import read_file
from controller_client.policy.file import SYSTEM_FILE, read_policy_file
from controller_client.system.files.plain_file import open_plain

UNIT: Final = "holdline-controller.service"
_DEPLOY: Final = Path(__file__).resolve().parents[1] / "deploy"
_MARK: Final = "# Written by holdline-controller, which keeps what was changed here. Digest: "
_LAST_SECTION: Final = "[Install]"
_RIGHTS: Final = "AmbientCapabilities"
_FALSE: Final = frozenset({"", "0", "no", "n", "false", "f", "off"})


def unit_text(place: Installation, *, allow_sudo: bool) -> str:
    """Return the unit of an installation, with its mark. Raises ConfigurationError."""
    lines = []
    may_become_others = changes_user(place)
    for line in (_DEPLOY / UNIT).read_text().splitlines():
        key, _, _ = line.partition("=")
        if key == "ExecStart":
            lines.append(f"ExecStart={_command_line(place.arguments('run'))}")
        elif key in {"User", "Group"} and place.is_system:
            lines.append(f"{key}={_name(key, place)}")
        elif key in {"User", "Group", "StateDirectory", "StateDirectoryMode"}:
            # A user's own unit runs as that user, whose state directory is another one.
            lines += [line] if place.is_system else []
        elif key == "WantedBy" and not place.is_system:
            lines.append("WantedBy=default.target")
        elif line.startswith(f"#{_RIGHTS}=") and may_become_others:
            lines.append(line.removeprefix("#"))
        elif not (key == "NoNewPrivileges" and allow_sudo):
            lines.append(line)
    text = "\n".join(lines) + "\n"
    return f"{_mark(text)}\n{text}"


def _command_line(words: list[str]) -> str:
    """Write words as systemd reads them: the path of a user's home may have a blank.

    It looks for variables in all words but the first.
    """
    command, *arguments = words
    return " ".join(map(_quoted, [command, *(word.replace("$", "$$") for word in arguments)]))


def _quoted(word: str) -> str:
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return word if quoted == word and not set(word) & set(" \t'") else f'"{quoted}"'


def _name(key: str, place: Installation) -> str:
    # Imported here: macOS and users' own units do not need it.
    import grp

    if key == "User":
        return place.user
    group = place.account.pw_gid
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        # systemd takes the number as well.
        return str(group)


def _mark(text: str) -> str:
    return f"{_MARK}{sha256(text.encode()).hexdigest()[:16]}"


def mark_of(unit: str) -> str:
    """Return the first line of a unit, which tells what was written."""
    return unit.partition("\n")[0]


def is_ours(unit: str) -> bool:
    """Tell whether a unit is as it was written."""
    mark, _, text = unit.partition("\n")
    return mark == _mark(text)


def read_unit(path: Path) -> str:
    """Return the text of a unit; what a person wrote there need not be UTF-8. Raises OSError."""
    with open_plain(path) as file:
        return file.read().decode("utf-8", "replace")


def is_cut(unit: str, written: Iterable[str]) -> bool:
    """Tell whether a unit has lost its end, which no person has changed.

    ``written`` are the units that this version writes: a unit with the mark of one is compared with
    it. A person's own unit, without a mark, need not have the last section.
    """
    if _has_end(unit):
        return False
    mark = mark_of(unit)
    for text in written:
        if mark == mark_of(text):
            return text.startswith(unit)
    return mark.startswith(_MARK) or _MARK.startswith(mark)


def _has_end(unit: str) -> bool:
    return _LAST_SECTION in map(str.strip, unit.splitlines())


def _values(unit: str, key: str) -> list[str]:
    """Return what a setting is given, line by line, with blanks where systemd allows them."""
    parts = (line.partition("=") for line in unit.splitlines())
    return [value.strip() for name, _, value in parts if name.strip() == key]


def allows_sudo(unit: str) -> bool:
    """Tell whether set-uid programs such as sudo work under the unit.

    A unit without its end may have lost the setting, so they do not.
    """
    *_, last = ("no", *_values(unit, "NoNewPrivileges"))
    return _has_end(unit) and last.lower() in _FALSE


def grants_rights(unit: str) -> bool:
    """Tell whether the unit, or a drop-in of it, lets the daemon run programs as another user."""
    given = " ".join(_values(unit, _RIGHTS)).split()
    return {"CAP_SETUID", "CAP_SETGID"} <= set(given)


def changes_user(place: Installation) -> bool:
    """Tell whether the host's policy wants programs to be of another user than the daemon's.

    Only a policy of root's is asked. Programs of sessions may be able to write one in the state
    directory, and this decides about rights that are worth as much as root. Raises
    ConfigurationError.
    """
    if not place.is_system:
        return False
    known = read_file(place.config_file) if place.config_file.exists() else {}
    named = known.get("policy")
    path = SYSTEM_FILE if named is None else Path(str(named))
    if not path.exists():
        return False
    if path.stat().st_uid != 0:
        raise ConfigurationError(
            f"the policy file {path} has to belong to root: it could give rights to the daemon"
        )
    return read_policy_file(path, is_daemon=False).run_as is not None
