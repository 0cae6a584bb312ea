"""A stop of the operator: seen at once, kept where programs could remove it."""

import asyncio
import logging
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from controller_client.policy import kill_switch
from controller_client.policy.kill_switch import KillSwitch, is_writable, kept_stop, warn_of_places
from tests.support.waiting import await_until


def _flash(path: Path) -> None:
    """There for no longer than a program needs to remove it."""
    path.touch()
    path.unlink()


@pytest.fixture
def other_user() -> str:
    """The name of an ordinary account that is not the one of this test."""
    own = {0, os.geteuid()}
    return next(entry.pw_name for entry in pwd.getpwall() if entry.pw_uid not in own)


@pytest.fixture
def stop(tmp_path: Path) -> Path:
    return tmp_path / "stop"


def test_in_a_protected_place_the_file_alone_decides(
    stop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kill_switch, "is_writable", lambda _: False)
    switch = KillSwitch([stop], kept_stop(tmp_path))
    stop.touch()
    assert switch.is_on
    stop.unlink()
    assert not switch.is_on


def test_a_stop_in_a_writable_place_survives_removal_and_restart(
    stop: Path, tmp_path: Path
) -> None:
    switch = KillSwitch([stop], kept_stop(tmp_path))
    assert not switch.is_on
    stop.touch()
    assert switch.is_on
    stop.unlink()
    assert switch.is_on
    assert KillSwitch([stop], kept_stop(tmp_path)).is_on
    kept_stop(tmp_path).unlink()
    assert switch.is_on, "a removal alone does not tell the running daemon to go on"
    assert not KillSwitch([stop], kept_stop(tmp_path)).is_on


def test_a_stop_in_either_place_stops(tmp_path: Path) -> None:
    for name in ("one", "other"):
        places = [tmp_path / "one/stop", tmp_path / "other/stop"]
        kept = tmp_path / f"stopped-{name}"
        assert not KillSwitch(places, kept).is_on
        (tmp_path / name).mkdir()
        (tmp_path / name / "stop").touch()
        assert KillSwitch(places, kept).is_on
        (tmp_path / name / "stop").unlink()


def test_a_stop_that_cannot_be_kept_on_disk_holds_until_the_restart(tmp_path: Path) -> None:
    stop, kept = tmp_path / "stop", tmp_path / "gone/stopped"
    switch = KillSwitch([stop], kept)
    stop.touch()
    assert switch.is_on
    stop.unlink()
    assert switch.is_on
    assert not kept.exists()


@pytest.mark.parametrize("is_protected", [True, False])
@pytest.mark.parametrize(
    "put",
    [
        lambda path: path.touch(0o000),
        Path.mkdir,
        lambda path: path.symlink_to("/nonexistent/file"),
        lambda path: path.symlink_to(path.name),
        os.mkfifo,
        lambda path: path.write_text("go on"),
    ],
    ids=["closed", "directory", "dangling", "loop", "fifo", "text"],
)
def test_whatever_has_the_name_stops_the_host(
    stop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    put: Callable[[Path], None],
    is_protected: bool,
) -> None:
    monkeypatch.setattr(kill_switch, "is_writable", lambda _: not is_protected)
    switch = KillSwitch([tmp_path / "elsewhere", stop], kept_stop(tmp_path))
    assert not switch.is_on
    put(stop)
    assert switch.is_on
    assert switch.is_on
    assert kept_stop(tmp_path).exists() is not is_protected


def test_a_kept_stop_is_kept_whatever_it_is_made_of(stop: Path, tmp_path: Path) -> None:
    kept = kept_stop(tmp_path)
    kept.symlink_to("/nonexistent/file")
    switch = KillSwitch([stop], kept)
    assert switch.is_on
    kept.unlink()
    kept.mkdir()
    # Nothing can be written there, and the stop that was seen holds all the same.
    other = KillSwitch([stop])
    stop.touch()
    assert other.is_on
    stop.unlink()
    assert (switch.is_on, other.is_on) == (True, True)


def test_a_place_that_cannot_be_looked_at_stops_the_host(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o000)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        assert KillSwitch([closed / "stop"]).is_on
        assert KillSwitch([], closed / "stopped").is_on
    finally:
        os.seteuid(user)
        closed.chmod(0o700)


async def test_a_stop_that_a_program_removes_at_once_is_seen(stop: Path, tmp_path: Path) -> None:
    switch = KillSwitch([stop], kept_stop(tmp_path))
    close = switch.watch()
    try:
        _flash(stop)
        await await_until(lambda: switch.is_on, 30, "the stop to be seen")
        kept_stop(tmp_path).unlink()
        await await_until(kept_stop(tmp_path).exists, 30, "what programs removed to be there again")
    finally:
        close()
        await asyncio.sleep(0)


def test_a_path_below_a_directory_of_the_user_counts_as_writable(tmp_path: Path) -> None:
    assert is_writable(tmp_path / "stop")
    assert is_writable(Path("/etc/holdline/stop")) == (os.geteuid() == 0)


def test_the_start_warns_of_places_that_programs_can_write(
    tmp_path: Path, other_user: str, caplog: pytest.LogCaptureFixture
) -> None:
    places = [tmp_path / "policy.toml"], [tmp_path / "stop"]
    with caplog.at_level(logging.WARNING):
        warn_of_places(*places)
    assert [str(tmp_path / "policy.toml") in caplog.text, "kill switch" in caplog.text] == [
        True,
        True,
    ]
    caplog.clear()
    tmp_path.chmod(0o700)
    warn_of_places(*places, run_as=other_user)
    assert caplog.text == ""
    tmp_path.chmod(0o777)
    warn_of_places(*places, run_as=other_user)
    assert "replace the policy file" in caplog.text
    caplog.clear()
    tmp_path.chmod(0o1777)
    warn_of_places(*places, run_as=other_user)
    assert caplog.text == ""


def test_a_place_that_cannot_be_looked_at_counts_as_a_stop(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert KillSwitch([tmp_path / "none", loop / "stop"]).is_on
    assert KillSwitch([], kept_stop(loop)).is_on
    assert not KillSwitch([tmp_path / "none" / "stop"], kept_stop(tmp_path / "none")).is_on


def test_a_stop_is_kept_in_a_file_of_its_own_and_through_no_link(
    stop: Path, tmp_path: Path
) -> None:
    stop.touch()
    assert KillSwitch([stop], kept_stop(tmp_path)).is_on
    assert kept_stop(tmp_path).stat().st_mode & 0o777 == 0o600
    kept_stop(tmp_path).unlink()
    kept_stop(tmp_path).symlink_to(tmp_path / "elsewhere")
    assert KillSwitch([stop], kept_stop(tmp_path)).is_on
    assert not (tmp_path / "elsewhere").exists()


async def test_other_files_beside_the_switch_stop_nothing(stop: Path, tmp_path: Path) -> None:
    switch = KillSwitch([stop], kept_stop(tmp_path))
    close = switch.watch()
    try:
        for name in ("stop2", "sto", "policy.toml"):
            _flash(tmp_path / name)
        _flash(kept_stop(tmp_path))
        for name in ("Stop", "stop.txt", ".stop", "stop "):
            (tmp_path / name).touch()
        assert not switch.is_on
        _flash(stop)
        await await_until(lambda: switch.is_on, 30, "the stop to be seen")
    finally:
        close()
        await asyncio.sleep(0)


def test_the_start_warns_of_a_switch_whose_place_is_not_there(
    tmp_path: Path, other_user: str, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    missing = tmp_path / "missing" / "stop"
    with caplog.at_level(logging.WARNING):
        warn_of_places([], [missing, tmp_path / "stop"], run_as=other_user)
        assert caplog.text == ""
        warn_of_places([], [missing], run_as=other_user)
    assert f"make {missing.parent}" in caplog.text
