"""Encrypted files of a backup: for a passphrase, or for a public key that cannot open them again.

A file is a line of JSON (the header), and pieces of AES-256-GCM. A piece is sealed under its number
and under whether it is the last one, so no piece can be left out, moved or cut off. The header is
part of what each piece vouches for.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from backup.errors import BackupError

PASSPHRASE, PUBLIC_KEY = "passphrase", "public key"
MIN_PASSPHRASE_BYTES: Final = 16
_PIECE_BYTES: Final = 1024 * 1024
_TAG_BYTES: Final = 16
_MOST_HEADER_BYTES: Final = 4096
_PURPOSE: Final = b"holdline backup 1"
# A file with this anywhere, or that begins like this, holds a key or a certificate. As a passphrase
# a public one would protect nothing, and the private key would not open what it has sealed.
_PEM: Final = b"-----BEGIN "
_PUBLIC_KEYS: Final = (b"ssh-", b"ecdsa-", b"sk-", b"age1")
_RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class Sealer:
    """Encrypts files for whoever has the passphrase, or the private key, of a file."""

    def __init__(self, key_file: Path) -> None:
        content = _content(key_file)
        if _PEM in content or content.lstrip().startswith(_PUBLIC_KEYS):
            self.kind = PUBLIC_KEY
            self._key, self._header = _agreed(_public_key(content, key_file))
        else:
            self.kind = PASSPHRASE
            salt = os.urandom(16)
            self._key = _stretched(_passphrase(content, key_file), salt)
            self._header = {"salt": _text(salt)}

    def seal(self, plain: Path, sealed: Path) -> None:
        """Encrypt the file ``plain`` into the new file ``sealed``."""
        header = json.dumps({"sealed_with": self.kind, "file": sealed.name, **self._header})
        first = header.encode() + b"\n"
        with plain.open("rb") as source, sealed.open("xb") as target:
            target.write(first)
            cipher = AESGCM(_file_key(self._key, first))
            for number, (piece, is_last) in enumerate(_pieces(source, _PIECE_BYTES)):
                target.write(cipher.encrypt(_nonce(number, is_last), piece, first))

    def check(self, sealed: Path) -> Iterator[bytes]:
        """Yield what the sealed file holds, with the key that sealed it."""
        return _opened(sealed, self._key)


def unsealed(sealed: Path, key_file: Path) -> Iterator[bytes]:
    """Yield what a sealed file holds. Raises BackupError if the key does not open it."""
    content = _content(key_file)
    header = _header(sealed)
    try:
        if header["sealed_with"] == PASSPHRASE:
            key = _stretched(content.strip(), b64decode(header["salt"]))
        else:
            key = _shared(_private_key(content, key_file), b64decode(header["sender"]))
    except (KeyError, ValueError):
        raise BackupError(f"the first line of {sealed} was changed") from None
    return _opened(sealed, key)


def _opened(sealed: Path, key: bytes) -> Iterator[bytes]:
    with sealed.open("rb") as source:
        first = source.readline(_MOST_HEADER_BYTES)
        cipher = AESGCM(_file_key(key, first))
        for number, (piece, is_last) in enumerate(_pieces(source, _PIECE_BYTES + _TAG_BYTES)):
            try:
                yield cipher.decrypt(_nonce(number, is_last), piece, first)
            except InvalidTag:
                raise BackupError(
                    f"{sealed} is not opened by this passphrase or key, or it was changed"
                ) from None


def _pieces(source: BinaryIO, size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the rest of a file in pieces, each with whether it is the last; at least one."""
    piece = source.read(size)
    while True:
        following = source.read(size)
        yield piece, not following
        if not following:
            return
        piece = following


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11) + bytes([is_last])


def _header(sealed: Path) -> dict[str, str]:
    with sealed.open("rb") as source:
        try:
            header = json.loads(source.readline(_MOST_HEADER_BYTES))
            return {str(name): str(value) for name, value in header.items()}
        except (ValueError, AttributeError):
            raise BackupError(f"{sealed} is not an encrypted file of a backup") from None


# ---- keys ----------------------------------------------------------------------------------------


def _content(key_file: Path) -> bytes:
    try:
        return key_file.read_bytes()
    except OSError as error:
        raise BackupError(f"{key_file} cannot be read: {error.strerror}") from None


def _passphrase(content: bytes, key_file: Path) -> bytes:
    passphrase = content.strip()
    if len(passphrase) < MIN_PASSPHRASE_BYTES:
        raise BackupError(
            f"the passphrase in {key_file} is shorter than {MIN_PASSPHRASE_BYTES} bytes. Make one: "
            "openssl rand -base64 32"
        )
    return passphrase


def _public_key(content: bytes, key_file: Path) -> X25519PublicKey:
    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, X25519PublicKey):
        raise BackupError(
            f"{key_file} holds no public X25519 key in PEM. Make a pair: openssl genpkey "
            "-algorithm X25519 -out private.pem, then openssl pkey -in private.pem "
            "-pubout -out public.pem"
        )
    return key


def _private_key(content: bytes, key_file: Path) -> X25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, X25519PrivateKey):
        raise BackupError(f"{key_file} does not hold the private X25519 key of this backup")
    return key


def _agreed(public: X25519PublicKey) -> tuple[bytes, dict[str, str]]:
    sender = X25519PrivateKey.generate()
    own = sender.public_key().public_bytes(*_RAW)
    key = _derived(sender.exchange(public), own + public.public_bytes(*_RAW))
    return key, {"sender": _text(own)}


def _shared(private: X25519PrivateKey, sender: bytes) -> bytes:
    own = private.public_key().public_bytes(*_RAW)
    return _derived(private.exchange(X25519PublicKey.from_public_bytes(sender)), sender + own)


def _stretched(passphrase: bytes, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase)


def _file_key(key: bytes, first: bytes) -> bytes:
    """The key of one file: no two files share one, so that their pieces may have equal numbers."""
    return _derived(key, first)


def _derived(secret: bytes, about: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=about, info=_PURPOSE).derive(secret)


def _text(value: bytes) -> str:
    return b64encode(value).decode()
