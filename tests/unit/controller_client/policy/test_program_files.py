"""A listed name leads to one file, and only some links count as that file."""

from pathlib import Path

import pytest

from controller_client.command_policy.shell_grammar import CommandNotAllowed
from controller_client.policy.program_files import is_same_program, real_file
from controller_client.system.start_failure import StartFailed


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _real(name: str, directory: Path, *listed: str) -> str:
    return real_file(name, str(directory), lambda path: path in listed)


def test_a_name_is_found_on_the_fixed_path_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _program(tmp_path / "bin/echo")
    _program(tmp_path / "other/echo")
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    monkeypatch.chdir(tmp_path / "other")
    assert _real("echo", tmp_path / "bin") == str(first)
    assert _real(str(first), tmp_path / "other") == str(first)
    for name in ("./echo", "../other/echo", "bin/echo"):
        with pytest.raises(CommandNotAllowed):
            _real(name, tmp_path / "bin")
    with pytest.raises(StartFailed) as missing:
        _real("elsewhere", tmp_path / "bin")
    assert missing.value.failure.code == "PROGRAM_NOT_FOUND"


def test_a_link_to_another_program_is_not_the_name(tmp_path: Path) -> None:
    other = _program(tmp_path / "bin/id")
    (tmp_path / "bin/echo").symlink_to(other)
    with pytest.raises(CommandNotAllowed) as refused:
        _real("echo", tmp_path / "bin")
    assert refused.value.part == "echo"
    assert str(other) in str(refused.value)
    assert _real("echo", tmp_path / "bin", str(other)) == str(other)


def test_a_link_through_links_counts_by_its_end(tmp_path: Path) -> None:
    version = _program(tmp_path / "bin/python3.11")
    (tmp_path / "bin/python3").symlink_to("python3.11")
    (tmp_path / "bin/python").symlink_to("python3")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/alternative").symlink_to(version)
    (tmp_path / "bin/snake").symlink_to(tmp_path / "etc/alternative")
    assert _real("python3", tmp_path / "bin") == _real("python", tmp_path / "bin") == str(version)
    with pytest.raises(CommandNotAllowed):
        _real("snake", tmp_path / "bin")


@pytest.mark.parametrize(
    ("name", "real", "is_same"),
    [
        ("python3", "/usr/bin/python3.11", True),
        ("gcc", "/usr/bin/gcc-12", True),
        ("/bin/echo", "/usr/bin/echo", True),
        ("echo", "/usr/bin/echo2evil", False),
        ("sh", "/usr/bin/dash", False),
        ("vim", "/usr/bin/vim.basic", False),
        ("python3.11", "/usr/bin/python3", False),
        ("a", "/usr/bin/ab", False),
    ],
)
def test_a_version_is_the_same_program_and_nothing_else_is(
    name: str, real: str, is_same: bool
) -> None:
    assert is_same_program(name, real) is is_same
