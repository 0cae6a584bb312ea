"""A file of the operator's is used only if nobody else can have written it."""

import os
from pathlib import Path

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.config.owned_file import read_owned_file

OTHER = 12345
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own" / "file.toml"
    path.parent.mkdir(0o755)
    path.write_text("text")
    path.chmod(0o644)
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read_owned_file("the file", path)
    return str(refused.value)


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o640, 0o644, 0o755])
def test_a_file_that_others_can_only_read_is_used(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert read_owned_file("the file", file) == "text"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o622, 0o664, 0o646, 0o777])
def test_a_file_that_a_group_or_all_can_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    remedy = f"chmod go-w {file}"
    assert remedy in _refusal(file)
    file.chmod(mode & ~0o022)
    assert read_owned_file("the file", file) == "text"


@NEEDS_ROOT
@pytest.mark.parametrize(
    ("owner", "user", "is_used"),
    [(0, 0, True), (0, OTHER, True), (OTHER, OTHER, True), (OTHER, 0, False), (1, OTHER, False)],
)
def test_a_file_of_root_or_of_this_user_is_used_and_no_other(
    file: Path, monkeypatch: pytest.MonkeyPatch, owner: int, user: int, is_used: bool
) -> None:
    os.chown(file, owner, OTHER)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if is_used:
        assert read_owned_file("the file", file) == "text"
    else:
        assert "belongs to another user" in _refusal(file)


def test_a_file_that_any_user_could_replace_is_refused(file: Path) -> None:
    file.parent.chmod(0o757)
    assert "any user could replace it" in _refusal(file)
    # As in /tmp, only the owner replaces what is there.
    file.parent.chmod(0o1777)
    assert read_owned_file("the file", file) == "text"


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, file: Path) -> None:
    link, pipe, directory = tmp_path / "link", tmp_path / "pipe", tmp_path / "directory"
    link.symlink_to(file)
    os.mkfifo(pipe, 0o600)
    directory.mkdir(0o755)
    assert "cannot open the file" in _refusal(link)
    assert "is not a regular file" in _refusal(pipe)
    assert "is not a regular file" in _refusal(directory)
    assert "No such file" in _refusal(tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"No such file.*; name another with --policy"):
        read_owned_file("the file", tmp_path / "none", option="--policy")


def test_a_file_is_read_up_to_a_mebibyte(file: Path) -> None:
    file.write_bytes(b"#" * (1 << 20))
    assert len(read_owned_file("the file", file)) == 1 << 20
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert "larger than 1048576 bytes" in _refusal(file)


def test_a_file_that_is_no_text_is_a_value_error(file: Path) -> None:
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="utf-8"):
        read_owned_file("the file", file)
