"""The names of who types a command, for the audit log."""

import os
import pwd

import pytest

from projects.management.naming import actor


def test_a_number_without_a_name_can_carry_out_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert actor() == f"cli:user {os.getuid()}"
