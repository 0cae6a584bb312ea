"""Sealed bodies open with any known key and with no other."""

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.test import override_settings

from projects.storage.sealing import open_sealed, seal

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@override_settings(ENCRYPTION_KEYS=[OLD])
def test_what_was_sealed_opens_and_is_not_readable_in_between() -> None:
    sealed = seal(b"hunter2")
    assert b"hunter2" not in sealed
    assert open_sealed(memoryview(sealed)) == b"hunter2"


def test_keys_rotate_by_putting_a_new_one_in_front() -> None:
    with override_settings(ENCRYPTION_KEYS=[OLD]):
        sealed = seal(b"x")
    with override_settings(ENCRYPTION_KEYS=[NEW, OLD]):
        assert open_sealed(sealed) == b"x"
        resealed = seal(b"x")
    with override_settings(ENCRYPTION_KEYS=[NEW]):
        assert open_sealed(resealed) == b"x"
        with pytest.raises(InvalidToken):
            open_sealed(sealed)
