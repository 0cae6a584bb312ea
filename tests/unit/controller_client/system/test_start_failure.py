"""Start failures are typed by what a caller can do about them."""

import errno

import pytest

from controller_client.system.start_failure import (
    cwd_not_found,
    from_os_error,
    program_not_executable,
    program_not_found,
)


@pytest.mark.parametrize("name", ["EAGAIN", "ENOMEM", "ENOSPC", "EMFILE", "ENFILE"])
def test_a_lack_of_resources_is_told_apart(name: str) -> None:
    failure = from_os_error(OSError(getattr(errno, name), "text"), "cannot fork").failure
    assert (failure.code, failure.errno_name, failure.message) == (
        "RESOURCE_EXHAUSTED",
        name,
        "cannot fork: text",
    )


def test_other_refusals_of_the_kernel_keep_their_errno() -> None:
    assert from_os_error(OSError(errno.EPERM, "no"), "x").failure.errno_name == "EPERM"
    assert from_os_error(OSError("no number"), "x").failure.errno_name is None


def test_each_reason_has_its_code() -> None:
    assert [
        make("x").failure.code
        for make in (program_not_found, program_not_executable, cwd_not_found)
    ] == [
        "PROGRAM_NOT_FOUND",
        "PROGRAM_NOT_EXECUTABLE",
        "CWD_NOT_FOUND",
    ]
