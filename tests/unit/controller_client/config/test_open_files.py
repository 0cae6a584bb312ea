"""What fails for want of descriptors is told as the limit that has to be raised."""

import errno
import os

import pytest

from controller_client.config.errors import AlreadyRunning, ConfigurationError
from controller_client.config.open_files import enough_open_files
from controller_client.system.resource_limits import open_files_allowed


def _call(number: int) -> None:
    raise OSError(number, os.strerror(number))


def _fail(number: int, *, is_told_as_ours: bool) -> None:
    """Fail as a system call does, or as our own code tells the failure of one."""
    try:
        _call(number)
    except OSError:
        if not is_told_as_ours:
            raise
        raise ConfigurationError("cannot lock the state directory") from None


@pytest.mark.parametrize("is_told_as_ours", [True, False])
def test_too_few_descriptors_are_told_with_the_limit_and_the_remedy(is_told_as_ours: bool) -> None:
    with (
        pytest.raises(ConfigurationError, match="LimitNOFILE=1024 in the unit") as refused,
        enough_open_files(),
    ):
        _fail(errno.EMFILE, is_told_as_ours=is_told_as_ours)
    assert f"is {open_files_allowed()} (RLIMIT_NOFILE)" in str(refused.value)


def test_every_other_failure_is_told_as_it_is() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)), enough_open_files():
        _fail(errno.ENOSPC, is_told_as_ours=False)
    with pytest.raises(ConfigurationError, match="cannot lock"), enough_open_files():
        _fail(errno.ENOSPC, is_told_as_ours=True)
    with pytest.raises(AlreadyRunning), enough_open_files():
        raise AlreadyRunning("/var/lib/holdline-controller")
