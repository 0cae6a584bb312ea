"""Without /proc a claim rests on flags and text: it says ``heuristic`` and proves nothing.

Linux runs this with the probe of macOS. On a Mac the same command runs it with the system's own:
``.venv/bin/python -m pytest tests/contract/terminal``.
"""

import sys

import pytest

from controller_client.terminal_state import TerminalWatcher, Verdict, watcher
from controller_client.terminal_state.flags_probe import FlagsProbe, probe_of
from tests.support.hosts.bare_terminal import BareTerminal

_LONG = 20.0


@pytest.fixture(autouse=True)
def _no_process_can_be_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "probe_of", FlagsProbe)


def _claim(script: str) -> Verdict:
    with BareTerminal(["/bin/sh", "-c", script]) as terminal:
        return terminal.wait(_LONG)


def test_the_probe_of_a_system_is_the_one_that_it_can_answer() -> None:
    is_linux = sys.platform.startswith("linux")
    assert isinstance(probe_of(-1, 1), FlagsProbe) != is_linux


def test_a_prompt_is_a_guess() -> None:
    verdict = _claim("printf 'Name: '; read x")
    assert (verdict.state, verdict.evidence) == ("awaiting_input", "heuristic")
    assert (verdict.kind, verdict.prompt) == ("line", "Name: ")


def test_hidden_input_is_a_secret_by_the_flags() -> None:
    verdict = _claim("stty -echo; printf 'Password: '; read x")
    assert (verdict.kind, verdict.evidence) == ("secret", "heuristic")


def test_each_turn_ends_at_the_next_prompt() -> None:
    with BareTerminal(["/bin/sh", "-c", "while printf 'Next? '; read x; do :; done"]) as terminal:
        for number in range(3):
            assert terminal.wait(_LONG).evidence == "heuristic"
            assert terminal.output.endswith(b"Next? ")
            terminal.send(b"%d\n" % number)


@pytest.mark.parametrize("script", ["read x", "echo building; sleep 1", "sleep 1; echo done"])
def test_without_a_prompt_nothing_is_claimed(script: str) -> None:
    with BareTerminal(["/bin/sh", "-c", script]) as terminal:
        assert not terminal.wait(3.0).is_waiting


def test_no_reader_is_named_so_no_stored_secret_is_typed() -> None:
    with BareTerminal(["/bin/sh", "-c", "stty -echo; printf 'Password: '; read x"]) as terminal:
        assert terminal.wait(_LONG).kind == "secret"
        assert isinstance(terminal.watcher, TerminalWatcher)
        assert terminal.watcher.reader() is None
