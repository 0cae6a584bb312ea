"""A keyboard goes back however the command that took it ends."""

import builtins
import signal
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from projects import services
from projects.models import CommandSession, ControllerCommand
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.signal(number, signal.SIG_IGN) for number in _SIGNALS]
    yield
    for number, handler in zip(_SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _never(*_question: object) -> str:
    raise AssertionError("nobody is there")


def _end() -> str:
    raise EOFError


def _handed_back(session: CommandSession, **options: Any) -> str:
    call_command("take_over", str(session.id), stdout=StringIO(), **options)
    session.refresh_from_db()
    assert session.taken_over_by == ""
    return session.handback_note


@pytest.mark.parametrize("number", _SIGNALS)
def test_a_signal_while_it_waits_for_a_line_hands_back(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def read(_question: str) -> str:
        monkeypatch.setattr(builtins, "input", _never)
        signal.raise_signal(number)
        return "not typed"

    monkeypatch.setattr(builtins, "input", read)
    assert _handed_back(session, note="bye").endswith(": bye")
    assert session.input_seq == 0


def test_a_signal_while_it_shows_output_hands_back_after_that(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Callable[..., Any] = services.session_read_output

    async def read_output(*given: Any, **named: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return await reads(*given, **named)

    monkeypatch.setattr(services, "session_read_output", read_output)
    monkeypatch.setattr(builtins, "input", _never)
    _handed_back(session)


@pytest.mark.parametrize("line", ["/keys", "/keys  "])
def test_keys_without_a_name_type_nothing(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    lines = iter([line])
    monkeypatch.setattr(builtins, "input", lambda *_question: next(lines, None) or _end())
    out = StringIO()
    call_command("take_over", str(session.id), stdout=out, note="")
    assert "nothing was typed: name keys" in out.getvalue()
    assert not ControllerCommand.objects.filter(session=session, type="SEND_INPUT").exists()


def test_a_reader_who_is_gone_hands_back(session: CommandSession) -> None:
    class Gone(StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        call_command("take_over", str(session.id), stdout=Gone())
    session.refresh_from_db()
    assert session.taken_over_by == ""
