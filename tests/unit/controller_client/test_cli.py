"""The command line and its exit codes."""

import importlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controller_client import __version__
from controller_client.cli import _own_name, _parser, main

COMMANDS = {
    "run",
    "enroll",
    "rotate",
    "service",
    "sessions",
    "kill",
    "attach",
    "logs",
    "doctor",
    "completion",
}


@pytest.mark.parametrize(
    "arguments",
    [[], ["walk"], ["run"], ["enroll", "--server", "ws://127.0.0.1/"], ["run", "--loud"]],
)
def test_wrong_usage_exits_with_64(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 64
    assert "usage" in capsys.readouterr().err


def test_a_bad_configuration_exits_with_78_and_says_what_to_change(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    credential = tmp_path / "credential"
    credential.write_text("ctl_a_b")
    credential.chmod(0o644)
    code = main(
        ["run", "--server", "ws://127.0.0.1/", "--credential-file", str(credential), "--allow-root"]
    )
    assert code == 78
    assert "chmod 600" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "text"), [("--help", "run"), ("--version", __version__)])
def test_help_and_version_are_printed(
    option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main([option])
    assert exited.value.code == 0
    assert text in capsys.readouterr().out


def test_help_names_the_user_of_programs_and_not_the_daemons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "without a control group, of the user of programs" in told
    assert "run as root too, unless the policy names another user" in told


def test_each_command_in_the_documents_is_one_that_the_parser_knows() -> None:
    root = Path(__file__).parents[3]
    pages = [*(root / "docs").rglob("*.md"), root / "controller_client/README.md"]
    pattern = re.compile(r"holdline-controller ((?:[a-z]+ ?)+(?: ?(?:--?[a-z-]+|[^\s`|\x22)]+))*)")
    lines = {
        match[1].rstrip(").,:")
        for page in pages
        for span in re.findall(r"`([^`\n]+)`|^(?:   )?([a-z/$].+)$", page.read_text(), re.MULTILINE)
        for match in pattern.finditer(" ".join(span))
        if not match.string.startswith("cp ") and "systemctl" not in match.string
    }
    known = [line for line in sorted(lines) if line.split()[0] in COMMANDS]
    assert len(known) > 10
    for line in known:
        _parser(with_administration=True).parse_args(line.split())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(
    ("command", "code"),
    [("sessions", 78), ("kill --all", 78), ("attach x", 78), ("service status", 78), ("doctor", 1)],
)
def test_a_home_of_somebody_else_ends_no_command_with_a_traceback(
    command: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Loaded while this process can still read the files of this Python.
    for module in ("doctor.examination", "local_sessions", "service"):
        importlib.import_module(f"controller_client.administration.{module}")
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    monkeypatch.setenv("HOME", str(closed))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "executable", "/bin/sh")
    # The user of nobody's files.
    os.seteuid(65534)
    try:
        assert main(command.split()) == code
    finally:
        os.seteuid(0)
    told = "".join(capfd.readouterr())
    assert "Permission denied" in told
    assert "as the daemon's user" in told


def test_the_daemon_loads_nothing_of_the_administration() -> None:
    code = (
        "import sys, controller_client.cli, controller_client.server_link.daemon; "
        "print(*(name for name in sys.modules if 'administration.' in name))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert loaded.stdout.split() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("command", [["run"], ["enroll", "--code", "enr_a_b"], ["rotate"]])
def test_root_is_refused_with_78_before_anything_is_read_or_asked(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--server", "ws://127.0.0.1:9/", "--state-dir", "/nowhere"]) == 78
    assert "--allow-root" in capsys.readouterr().err
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("web-1", "web-1"),
        ("web-1.example", "web-1"),
        ("Web_1", "Web_1"),
        ("b\u00fccher.example", "b-cher"),
        ("a b<c>", "a-b-c-"),
        ("x" * 300, "x" * 64),
        ("", ""),
        (".example", ""),
    ],
)
def test_a_host_names_itself_by_what_a_controller_can_be_called(
    hostname: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: hostname)
    assert _own_name() == name


def test_an_unexpected_error_ends_the_process_beside_a_thread_that_hangs() -> None:
    code = """
import threading
from controller_client import cli
def fails():
    threading.Thread(target=threading.Event().wait).start()
    raise LookupError("unexpected")
cli.main = fails
cli.console()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith(b"LookupError: unexpected")
