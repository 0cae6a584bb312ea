"""The account and the directory of a program whose truth is known."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts import Account, ordinary_user


@pytest.fixture(scope="module")
def user() -> Iterator[Account]:
    """Return an account without privileges that may use sudo with a password."""
    with ordinary_user("t", may_sudo=True) as account:
        yield account


@pytest.fixture(scope="module")
def keeper() -> Iterator[Account]:
    """Return the account of a daemon whose programs run as another user."""
    with ordinary_user("b") as account:
        yield account


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a directory in which the program runs."""
    directory = Path(tempfile.mkdtemp(prefix="holdline-truth-"))
    yield directory
    shutil.rmtree(directory)
