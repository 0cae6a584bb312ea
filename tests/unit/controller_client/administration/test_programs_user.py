"""The policy that gives programs a user of their own, and what it says about sudo."""

import argparse
import os
import pwd
from pathlib import Path

import pytest

from controller_client.administration import programs_user
from controller_client.administration.installation import Installation
from controller_client.administration.managers import Launchd, Systemd, Unmanaged
from controller_client.policy import file as policy
from controller_client.policy.file import read_policy_file

USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A host of root's without a service manager, which has the user of programs already."""
    monkeypatch.setattr(policy, "SYSTEM_FILE", tmp_path / "policy.toml")
    monkeypatch.setattr(programs_user, "make_user", lambda _name: None)
    monkeypatch.setattr(programs_user, "_join_group", lambda _daemon: None)
    monkeypatch.setattr(programs_user, "manager_of", Unmanaged)
    monkeypatch.setattr("os.fchown", lambda *_: None)
    return Installation(
        is_system=True, user=USER, state_dir=tmp_path / "state", config_file=tmp_path / "c.toml"
    )


def _set_sudo(place: Installation, *, allows: bool | None) -> bool:
    """Give the option, and return whether programs may become other users then."""
    programs_user.set_sudo(place, argparse.Namespace(allow_sudo=allows, policy=None))
    return not read_policy_file(policy.SYSTEM_FILE, is_daemon=False).keeps_user


@pytest.mark.parametrize(("said", "holds"), [(None, False), (True, True), (False, False)])
def test_sudo_without_systemd_works_only_where_it_was_allowed(
    place: Installation, said: bool | None, holds: bool
) -> None:
    programs_user.make(place, allow_sudo=said)
    written = read_policy_file(policy.SYSTEM_FILE, is_daemon=False)
    assert (written.run_as, written.keeps_user) == (programs_user.NAME, not holds)
    # An installation that does not say so changes nothing.
    assert _set_sudo(place, allows=None) is holds


def test_a_unit_of_systemd_decides_about_sudo_where_there_is_one(
    place: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs_user, "manager_of", Systemd)
    programs_user.make(place, allow_sudo=None)
    assert not read_policy_file(policy.SYSTEM_FILE, is_daemon=False).keeps_user


def test_sudo_is_allowed_and_forbidden_later_in_the_own_policy(
    place: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    programs_user.make(place, allow_sudo=None)
    first = policy.SYSTEM_FILE.read_text()
    assert _set_sudo(place, allows=True)
    assert "may_change = true" in capsys.readouterr().out
    assert not _set_sudo(place, allows=False)
    assert policy.SYSTEM_FILE.read_text() == first
    # A second time nothing is written, and nothing has to be said.
    capsys.readouterr()
    assert not _set_sudo(place, allows=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("allows", [True, False])
def test_a_policy_of_the_administrators_stays_and_is_named(
    place: Installation, capsys: pytest.CaptureFixture[str], allows: bool
) -> None:
    policy.SYSTEM_FILE.write_text(f"[users]\nmay_change = {str(not allows).lower()}\n")
    policy.SYSTEM_FILE.chmod(0o640)
    assert _set_sudo(place, allows=allows) is not allows
    assert "may_change" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("manager", "is_said"), [(Unmanaged, True), (Launchd, True), (Systemd, False)]
)
def test_one_user_with_sudo_that_nothing_forbids_is_said(
    place: Installation,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    manager: type,
    is_said: bool,
) -> None:
    monkeypatch.setattr(programs_user, "manager_of", manager)
    programs_user.set_sudo(place, argparse.Namespace(allow_sudo=False, policy=None))
    assert ("sudo can work in sessions" in capsys.readouterr().out) is is_said
    assert not policy.SYSTEM_FILE.exists()
