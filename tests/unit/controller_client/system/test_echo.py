"""The echo of a terminal of this machine."""

import os
from pathlib import Path

import pytest

from controller_client.system import echo


def _open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


async def test_a_terminal_echoes_and_nothing_stays_open() -> None:
    before = _open_files()
    assert await echo.is_echoed()
    assert _open_files() == before


async def test_a_host_without_terminals_has_no_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError("out of pty devices")

    monkeypatch.setattr(os, "openpty", refuse)
    assert not await echo.is_echoed()


async def test_a_terminal_that_does_not_echo_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = os.pipe()
    monkeypatch.setattr(os, "openpty", lambda: ends)
    monkeypatch.setattr(os, "write", lambda *_: 1)
    monkeypatch.setattr(echo, "ECHO_SECONDS", 0.05)
    assert not await echo.is_echoed()
