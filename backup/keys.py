"""The keys of the server in a backup: without them its secrets cannot be read again."""

import hmac
from collections.abc import Iterable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from django.conf import settings

from backup.directory import flush, fresh_file, own_text
from backup.errors import BackupError
from projects.conf import conf

FILE: Final = "keys.json"
_PURPOSE: Final = b"holdline backup key"
_ENCRYPTION_FILE: Final = "encryption_key"
_LOGIN_FILE: Final = "secret_key"


class Keys(msgspec.Struct, frozen=True):
    """The key of logins, and the encryption keys, newest first."""

    secret_key: str
    encryption_keys: list[str]


def write_current(file: Path) -> None:
    """Write the keys of this server into a new file that only its owner reads."""
    file.touch(mode=0o600, exist_ok=False)
    file.write_bytes(
        msgspec.json.encode(Keys(str(settings.SECRET_KEY), list(conf.encryption_keys))) + b"\n"
    )


def ids(keys: Iterable[str]) -> list[str]:
    """Names of keys, which do not give them away."""
    return [hmac.new(key.encode(), _PURPOSE, sha256).hexdigest()[:16] for key in keys]


def read(file: Path) -> Keys:
    """The keys of a backup. Raises BackupError if this server cannot have them.

    Keys that are set in the environment stay as they are, so those of the backup must be there.
    """
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=Keys)
    except msgspec.DecodeError as error:
        raise BackupError(f"{file} holds no keys: {error}") from None
    is_known = set(kept.encryption_keys) <= set(conf.encryption_keys)
    if (
        not is_known
        and _file(_ENCRYPTION_FILE, conf.encryption_keys[0], kept.encryption_keys) is None
    ):
        raise BackupError(
            "the server's encryption keys are not those of the backup. Set "
            "HOLDLINE_ENCRYPTION_KEYS to the keys in the backup's keys.json, newest first; new "
            "keys may stand before them"
        )
    return kept


def use(kept: Keys) -> None:
    """Encrypt with the keys of the backup in this process from now on."""
    missing = [key for key in kept.encryption_keys if key not in conf.encryption_keys]
    settings.ENCRYPTION_KEYS = (*missing, *conf.encryption_keys)


def put_back(kept: Keys) -> list[str]:
    """Write the keys of the backup into the files in which this server keeps its own.

    Returns sentences about what was done.
    """
    said = []
    path = _file(_ENCRYPTION_FILE, None, kept.encryption_keys)
    if path is not None and own_text(path).strip() != kept.encryption_keys[0]:
        _replace(path, kept.encryption_keys[0])
        said.append("The encryption key of the backup is the server's again.")
    if kept.secret_key != settings.SECRET_KEY:
        path = _file(_LOGIN_FILE, str(settings.SECRET_KEY), [kept.secret_key])
        if path is None:
            said.append(
                "HOLDLINE_SECRET_KEY is not that of the backup: calls of before the backup, "
                "repeated, are refused with REQUEST_ID_REUSED."
            )
        else:
            _replace(path, kept.secret_key)
            said.append("The secret key of the backup is the server's again.")
    return said


def _file(name: str, current: str | None, kept: list[str]) -> Path | None:
    """The file in which this server keeps a key; None if a variable sets the key.

    A file holds one key. ``current`` is the key that the server has, if it is known.
    """
    path = Path(settings.DATA_DIR) / name
    is_used = path.is_file() and current in (None, own_text(path).strip())
    return path if is_used and len(kept) == 1 else None


def _replace(path: Path, key: str) -> None:
    """Replace a key file in one step. The old key stays beside it: nobody else may have it."""
    old = own_text(path)
    for file, text in ((_place_for(old, path), old), (path, f"{key}\n")):
        _write(file, text, like=path)


def _place_for(old: str, path: Path) -> Path:
    """Return where a key stays that is replaced: where no earlier restore has left another."""
    places = (
        path.with_name(f"{path.name}.before-restore{f'-{number}' if number > 1 else ''}")
        for number in count(1)
    )
    return next(place for place in places if _has_room(place, old))


def _has_room(place: Path, old: str) -> bool:
    if place.is_symlink():
        return False
    return not place.exists() or own_text(place) == old


def _write(path: Path, text: str, *, like: Path) -> None:
    fresh = path.with_name(f".{path.name}.restoring")
    fresh.unlink(missing_ok=True)
    with fresh_file(fresh, like=like) as file:
        file.write(text.encode())
    fresh.replace(path)
    flush(path.parent)
