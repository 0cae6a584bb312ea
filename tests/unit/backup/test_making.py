"""A backup of the database of this test: whole, on record, private, and refused with a reason."""

import json
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from backup import making, restoring
from backup.errors import BackupError
from backup.manifest import FILE, Manifest
from projects.models import AuditEvent, Project
from projects.secrets.store import Terms, secret_set

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

_PASSPHRASE = "correct horse battery staple\n"


@pytest.fixture(autouse=True)
def _server(tmp_path: Path, settings: Any) -> None:
    """A server with a directory of its own, a project and a secret."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    project = Project.objects.create(name="zarniwoop")
    terms = Terms(any_controller=True)
    secret_set(project=project, name="sudo", value="vogon poetry", terms=terms, actor="test")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of backups, which the first one makes."""
    return tmp_path / "of" / "backups"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A file with a passphrase."""
    (file := tmp_path / "passphrase").write_text(_PASSPHRASE)
    return file


def _made(place: Path, *options: str) -> Path:
    """A backup that was made now."""
    before = set(_names(place))
    call_command("backup", str(place), *options, stdout=StringIO(), stderr=StringIO())
    (new,) = set(_names(place)) - before
    return place / new


def _names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


def _files(backup: Path) -> Iterator[tuple[Path, bytes]]:
    return ((path, path.read_bytes()) for path in sorted(backup.iterdir()))


def test_a_backup_is_what_its_manifest_says_and_nobody_elses(place: Path) -> None:
    backup = _made(place)
    found = Manifest.read(backup)
    assert [path.name for path, _ in _files(backup)] == ["database.sqlite3", "keys.json", FILE]
    for stored in (found.database, found.keys):
        data = (backup / stored.name).read_bytes()
        assert (len(data), sha256(data).hexdigest()) == (stored.size_bytes, stored.sha256)
    assert found.rows["projects_project"] == 1
    assert found.rows["projects_secret"] == 1
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (place, backup)]
    assert modes == [0o700, 0o700]
    assert stat.S_IMODE((backup / "keys.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((backup / "database.sqlite3").stat().st_mode) == 0o600


def test_each_backup_is_on_record_with_what_it_removed(place: Path) -> None:
    first = _made(place)
    old = first.rename(place / "holdline-20260101T000000Z")
    second = _made(place, "--keep", "1")
    assert _names(place) == [second.name]
    rows = AuditEvent.objects.filter(action="backup.make").order_by("seq")
    assert [(row.detail["backup"], row.detail["removed"]) for row in rows] == [
        (first.name, []),
        (second.name, [old.name]),
    ]
    assert {row.actor.partition(":")[0] for row in rows} == {"cli"}
    assert rows[1].detail["database_sha256"] == Manifest.read(second).database.sha256


@pytest.mark.parametrize("last", ["_filled", "_removed"])
def test_a_backup_of_a_process_that_is_killed_is_on_record(
    place: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    def kill(*_: object) -> None:
        raise SystemExit(-9)

    monkeypatch.setattr(making, last, kill)
    with pytest.raises(SystemExit):
        _made(place)
    rows = AuditEvent.objects.filter(action__startswith="backup.")
    assert [(row.action, row.detail["sealed_with"]) for row in rows] == [("backup.begin", None)]
    assert set(_names(place)) <= {rows[0].detail["backup"]}
    assert bool(_names(place)) == (last == "_removed")


def test_without_a_key_the_command_warns_of_who_finds_it(place: Path, key: Path) -> None:
    for options, is_warned in (([], True), (["--encrypt-to", str(key)], False)):
        call_command("backup", str(place / str(is_warned)), *options, stderr=(err := StringIO()))
        assert ("can read every stored secret" in err.getvalue()) is is_warned


def test_nothing_of_the_server_is_legible_in_an_encrypted_backup(
    place: Path, key: Path, settings: Any
) -> None:
    plain, sealed = _made(place / "a"), _made(place / "b", "--encrypt-to", str(key))
    for backup, is_legible in ((plain, True), (sealed, False)):
        data = b"".join(data for path, data in _files(backup) if path.name != FILE)
        for text in ("zarniwoop", settings.ENCRYPTION_KEYS[0], str(settings.SECRET_KEY)):
            assert (text.encode() in data) is is_legible
        assert b"vogon poetry" not in data
        assert settings.ENCRYPTION_KEYS[0].encode() not in (backup / FILE).read_bytes()
    assert list(settings.DATA_DIR.iterdir()) == []


@pytest.mark.parametrize("text", ["", "short", "-----BEGIN PUBLIC KEY-----\nx\n"])
def test_a_key_that_encrypts_nothing_is_refused_and_leaves_nothing(
    place: Path, tmp_path: Path, text: str
) -> None:
    (bad := tmp_path / "bad").write_text(text)
    with pytest.raises(CommandError, match="no backup was made") as refused:
        call_command("backup", str(place), "--encrypt-to", str(bad))
    assert refused.value.returncode == 4
    assert _names(place) == []
    assert not AuditEvent.objects.filter(action="backup.make").exists()


def test_a_key_or_a_place_that_is_not_there_is_refused(place: Path, tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    for arguments in (
        (str(file),),
        (str(file / "below"),),
        (str(place), "--encrypt-to", str(tmp_path / "gone")),
        (str(place), "--encrypt-to", str(tmp_path)),
    ):
        with pytest.raises(CommandError, match="no backup was made"):
            call_command("backup", *arguments)
    assert _names(place) == []


@pytest.mark.parametrize("keep", ["0", "-1", "x", "1.5"])
def test_no_number_of_backups_to_keep_means_none(place: Path, keep: str) -> None:
    with pytest.raises(CommandError, match="--keep"):
        call_command("backup", str(place), "--keep", keep)
    assert not place.exists()


# ---- what a restore refuses before it looks at the database --------------------------------------


def _refused(backup: Path, key: Path | None = None) -> str:
    """Why the files of the backup cannot be used."""

    def read() -> None:
        manifest = Manifest.read(backup)
        restoring._require_fitting(manifest)
        with restoring._opened(backup, manifest, key) as file:
            for stored in (manifest.keys, manifest.database):
                file(stored)

    with pytest.raises(BackupError) as refused:
        read()
    return str(refused.value)


def _change(backup: Path, **fields: Any) -> None:
    told = json.loads((backup / FILE).read_text())
    (backup / FILE).write_text(json.dumps({**told, **fields}))


def test_an_encrypted_backup_is_opened_with_its_key_alone(
    place: Path, key: Path, tmp_path: Path
) -> None:
    backup = _made(place, "--encrypt-to", str(key))
    assert "--decrypt-with" in _refused(backup)
    (other := tmp_path / "other").write_text("another passphrase that is long\n")
    assert _refused(backup, other)
    manifest = Manifest.read(backup)
    with restoring._opened(backup, manifest, key) as file:
        kept = json.loads(file(manifest.keys).read_text())
    assert set(kept) == {"secret_key", "encryption_keys"}


@pytest.mark.parametrize("name", ["database.sqlite3", "keys.json"])
def test_a_file_that_was_changed_or_is_gone_is_refused(place: Path, name: str) -> None:
    backup = _made(place)
    data = (backup / name).read_bytes()
    (backup / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "is not what the manifest says" in _refused(backup)
    (backup / name).unlink()
    assert "is missing" in _refused(backup)
    os.mkfifo(backup / name)
    assert "is missing" in _refused(backup)


def test_a_manifest_that_does_not_fit_is_refused(place: Path) -> None:
    backup = _made(place)
    told = (backup / FILE).read_text()
    for fields, reason in (
        ({"format": 2}, "newer than this one"),
        ({"storage": "postgresql"}, "DATABASE_URL"),
        ({"migrations": ["projects.9999_of_tomorrow"]}, "9999_of_tomorrow"),
        ({"keys": {"name": "../keys.json", "size_bytes": 1, "sha256": ""}}, "outside"),
        ({"database": {"name": "/etc/passwd", "size_bytes": 1, "sha256": ""}}, "outside"),
        ({"keys": {"name": "..", "size_bytes": 1, "sha256": ""}}, "is missing"),
        ({"rows": None}, "cannot be read"),
    ):
        _change(backup, **fields)
        assert reason in _refused(backup)
        (backup / FILE).write_text(told)
    (backup / FILE).write_bytes(b"\xff{")
    assert "cannot be read" in _refused(backup)
    (backup / FILE).unlink()
    assert "is no backup" in _refused(backup)
    assert "is no backup" in _refused(place)
