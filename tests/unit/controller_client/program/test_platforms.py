"""The decision table of platforms."""

import pytest

from controller_client.program.platforms import Platform, PlatformName, recognise, this_platform

LINUX = "6.8.0-45-generic"


@pytest.mark.requirement("S1.R6.1")
@pytest.mark.parametrize(
    ("sys_platform", "release", "environment", "name"),
    [
        ("linux", LINUX, {}, "linux"),
        ("linux", "5.15.90.1-microsoft-standard-WSL2", {}, "wsl"),
        ("linux", "4.4.0-19041-Microsoft", {}, "wsl"),
        ("linux", LINUX, {"WSL_DISTRO_NAME": "Debian"}, "wsl"),
        ("linux", LINUX, {"WSL_INTEROP": "/run/WSL/8_interop"}, "wsl"),
        ("darwin", "24.1.0", {}, "macos"),
        ("darwin", "24.1.0", {"WSL_DISTRO_NAME": "Debian"}, "macos"),
        ("win32", "11", {}, "windows"),
        ("cygwin", "3.5", {}, "windows"),
        ("freebsd14", "14.1-RELEASE", {}, "other"),
    ],
)
def test_a_platform_is_recognised(
    sys_platform: str, release: str, environment: dict[str, str], name: str
) -> None:
    assert recognise(sys_platform, release, environment) == Platform(name)


@pytest.mark.requirement("S1.R6.1", "S1.R7.1", "S4.R3.2")
@pytest.mark.parametrize(
    ("name", "library", "executed"),
    [
        ("linux", "pexpect", ["echo", "a b"]),
        ("wsl", "pexpect", ["echo", "a b"]),
        ("macos", "pexpect", ["echo", "a b"]),
        ("other", "pexpect", ["echo", "a b"]),
        ("windows", "pywinpty", ["wsl.exe", "--exec", "echo", "a b"]),
    ],
)
def test_only_windows_runs_commands_in_wsl_and_terminals_by_pywinpty(
    name: PlatformName,
    library: str,
    executed: list[str],
) -> None:
    assert (Platform(name).terminal_library, Platform(name).command(["echo", "a b"])) == (
        library,
        executed,
    )


@pytest.mark.requirement("S1.R6.1")
def test_this_host_runs_commands_as_they_are() -> None:
    assert this_platform().command(["true"]) == ["true"]
