"""set_secret and reseal_secrets: a value goes in by standard input and comes out nowhere."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from projects.management.refusals import EXIT_REFUSED
from projects.models import Controller, Project, Secret
from projects.secrets.store import secret_open

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return Controller.objects.create(project=Project.objects.create(name="lab"), name="host")


def _run(monkeypatch: pytest.MonkeyPatch, value: str, *arguments: str) -> str:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(value))
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def _opened(controller: Controller, command: str = "anything") -> bytes:
    return secret_open(
        controller.project_id, "sudo", controller_id=controller.id, command=command
    ).value


def test_a_value_is_read_from_standard_input(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _run(
        monkeypatch,
        "hunter2 hunter2\n",
        "set_secret",
        "lab",
        "sudo",
        "--controller",
        "host",
        "--command",
        "sudo",
    )
    assert "hunter2" not in said
    assert _opened(controller, "sudo id") == b"hunter2 hunter2"
    assert "will not be masked" in _run(
        monkeypatch, "12345", "set_secret", "lab", "sudo", "--any-controller"
    )
    assert _opened(controller) == b"12345"
    assert "1 secrets" in _run(monkeypatch, "", "reseal_secrets")
    _run(monkeypatch, "", "set_secret", "lab", "sudo", "--delete")
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("hunter2", "hunter2"),
        ("hunter2\n", "hunter2"),
        ("hunter2\r\n", "hunter2"),
        (" hunter2 \n", " hunter2 "),
        ("p\u00e4ss'w\"rd $x `y` \\n\n", "p\u00e4ss'w\"rd $x `y` \\n"),
    ],
)
def test_only_the_end_of_its_line_is_no_part_of_a_value(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, given: str, kept: str
) -> None:
    _run(monkeypatch, given, "set_secret", "lab", "sudo", "--any-controller")
    assert _opened(controller).decode() == kept


@pytest.mark.parametrize("given", ["", "\n", "\r\n", "two\n\n", "one\rtwo\n", "x" * 1025, "a\0b\n"])
def test_what_is_no_line_is_no_value(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    with pytest.raises(CommandError):
        _run(monkeypatch, given, "set_secret", "lab", "sudo", "--any-controller")
    assert not Secret.objects.exists()


def test_a_value_is_asked_for_twice_on_a_terminal(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answers = iter(["one two", "one two", "one two", "other"])
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(answers))
    monkeypatch.setattr("sys.stdin", Terminal())
    call_command("set_secret", "lab", "sudo", "--any-controller", stdout=io.StringIO())
    assert _opened(controller) == b"one two"
    with pytest.raises(CommandError, match="the two values differ"):
        call_command("set_secret", "lab", "sudo", "--any-controller", stdout=io.StringIO())


@pytest.mark.parametrize(
    "arguments",
    [
        ["lab", "sudo"],
        ["nowhere", "sudo", "--any-controller"],
        ["lab", "sudo", "--controller", "elsewhere"],
        ["lab", "not a name", "--any-controller"],
        ["lab", "sudo", "--delete"],
        ["lab", "sudo", "--any-controller", "--delete"],
    ],
)
def test_what_makes_no_sense_is_refused(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    with pytest.raises(CommandError):
        _run(monkeypatch, "value value\n", "set_secret", *arguments)
    assert not Secret.objects.exists()


def test_an_impossible_value_is_refused_without_being_quoted(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError) as refused:
        _run(monkeypatch, "first\nsecond\n", "set_secret", "lab", "sudo", "--any-controller")
    assert "first" not in str(refused.value)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_value_that_is_no_text_is_refused_without_being_quoted(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"p\xe4ssword\n"), encoding="utf-8", errors=errors)
    monkeypatch.setattr("sys.stdin", stream)
    with pytest.raises(CommandError, match="not UTF-8") as refused:
        call_command("set_secret", "lab", "sudo", "--any-controller")
    assert refused.value.returncode == EXIT_REFUSED
    assert "ssword" not in str(refused.value)
    assert not Secret.objects.exists()


def test_a_lost_key_is_named(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    from cryptography.fernet import Fernet

    _run(monkeypatch, "value value\n", "set_secret", "lab", "sudo", "--any-controller")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match="HOLDLINE_ENCRYPTION_KEYS"):
        _run(monkeypatch, "", "reseal_secrets")


@pytest.mark.parametrize(
    ("command", "is_warned"),
    [
        ("git", True),
        ("/usr/bin/openssl", True),
        ("ssh", True),
        ("ssh -F none web1", False),
        ("sudo", False),
        ("/usr/bin/su", False),
        ("passwd", False),
    ],
)
@pytest.mark.usefixtures("controller")
def test_a_program_that_runs_others_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, command: str, *, is_warned: bool
) -> None:
    terms = ("--any-controller", "--command", command)
    said = _run(monkeypatch, "hunter2 hunter2", "set_secret", "lab", "x", *terms)
    assert (f"the program {command} can run others" in said) == is_warned
