"""Encrypted files open for the right passphrase or key alone, and only whole and unchanged."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backup.errors import BackupError
from backup.sealed_file import _PIECE_BYTES, Sealer, unsealed

SIZES = [0, 1, _PIECE_BYTES - 1, _PIECE_BYTES, _PIECE_BYTES + 1, 2 * _PIECE_BYTES]


def _passphrase(directory: Path) -> tuple[Path, Path]:
    file = directory / "passphrase"
    file.write_text("correct horse battery staple\n")
    return file, file


def _key_pair(directory: Path) -> tuple[Path, Path]:
    private, public = directory / "private.pem", directory / "public.pem"
    for command in (
        ["genpkey", "-algorithm", "X25519", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return public, private


@pytest.mark.parametrize("make", [_passphrase, _key_pair])
@pytest.mark.parametrize("size", SIZES)
def test_what_was_sealed_is_opened(
    tmp_path: Path, make: Callable[[Path], tuple[Path, Path]], size: int
) -> None:
    to_seal, to_open = make(tmp_path)
    plain, sealed = tmp_path / "plain", tmp_path / "plain.sealed"
    plain.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    sealer = Sealer(to_seal)
    sealer.seal(plain, sealed)
    assert b"".join(sealer.check(sealed)) == plain.read_bytes()
    assert b"".join(unsealed(sealed, to_open)) == plain.read_bytes()


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """Three pieces, sealed for the passphrase of ``_passphrase``."""
    plain = tmp_path / "plain"
    plain.write_bytes(b"y" * (2 * _PIECE_BYTES + 9))
    Sealer(_passphrase(tmp_path)[0]).seal(plain, tmp_path / "sealed")
    return tmp_path / "sealed"


def _without_the_end(content: bytes) -> bytes:
    first = content.index(b"\n") + 1
    return content[: first + 2 * (_PIECE_BYTES + 16)]


def _with_pieces_swapped(content: bytes) -> bytes:
    first, size = content.index(b"\n") + 1, _PIECE_BYTES + 16
    one, two = content[first : first + size], content[first + size : first + 2 * size]
    return content[:first] + two + one + content[first + 2 * size :]


def _with_another_name(content: bytes) -> bytes:
    return content.replace(b'"file": "sealed"', b'"file": "another"', 1)


def _with_one_bit_changed(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "change", [_without_the_end, _with_pieces_swapped, _with_another_name, _with_one_bit_changed]
)
def test_a_changed_file_is_not_opened(
    tmp_path: Path, sealed: Path, change: Callable[[bytes], bytes]
) -> None:
    sealed.write_bytes(change(sealed.read_bytes()))
    with pytest.raises(BackupError, match="it was changed"):
        list(unsealed(sealed, tmp_path / "passphrase"))


def test_another_passphrase_opens_nothing(tmp_path: Path, sealed: Path) -> None:
    (tmp_path / "other").write_text("another passphrase of good length")
    with pytest.raises(BackupError, match="not opened by this passphrase"):
        list(unsealed(sealed, tmp_path / "other"))


def test_the_public_key_cannot_open_what_it_sealed(tmp_path: Path) -> None:
    public, _ = _key_pair(tmp_path)
    (tmp_path / "plain").write_text("text")
    Sealer(public).seal(tmp_path / "plain", tmp_path / "sealed")
    with pytest.raises(BackupError, match="does not hold the private"):
        list(unsealed(tmp_path / "sealed", public))


def test_a_short_passphrase_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("secret")
    with pytest.raises(BackupError, match="openssl rand"):
        Sealer(tmp_path / "short")


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\n", b"# of the server's operator\n"])
def test_a_public_key_is_one_whatever_stands_before_it(tmp_path: Path, before: bytes) -> None:
    public, private = _key_pair(tmp_path)
    public.write_bytes(before + public.read_bytes())
    (tmp_path / "plain").write_text("text")
    Sealer(public).seal(tmp_path / "plain", tmp_path / "sealed")
    assert b"".join(unsealed(tmp_path / "sealed", private)) == b"text"


@pytest.mark.parametrize(
    "content",
    [
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM ada@host\n",
        b"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n",
    ],
)
def test_what_others_may_know_is_no_passphrase(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "known").write_bytes(content)
    with pytest.raises(BackupError, match="no public X25519 key in PEM"):
        Sealer(tmp_path / "known")


def test_a_private_key_is_no_passphrase_of_the_server(tmp_path: Path) -> None:
    _, private = _key_pair(tmp_path)
    with pytest.raises(BackupError, match="no public X25519 key in PEM"):
        Sealer(private)
