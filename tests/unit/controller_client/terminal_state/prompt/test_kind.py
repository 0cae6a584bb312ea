"""The kind of input follows from modes, program and text, in this order."""

import os

import pytest

from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.prompt.kind import prompt_kind
from controller_client.terminal_state.prompt.output_modes import OutputModes

LINES = Flags(is_echoing=True, is_canonical=True, is_polling=False)
SECRET = Flags(is_echoing=False, is_canonical=True, is_polling=False)
RAW = Flags(is_echoing=False, is_canonical=False, is_polling=False)
NOBODY = 0


@pytest.mark.parametrize(
    ("flags", "output", "comm", "kind"),
    [
        (LINES, b"Name: ", "cat", "line"),
        (LINES, b"$ ", "dash", "shell"),
        (LINES, b"Name: ", "dash", "line"),
        (SECRET, b"anything", "sudo", "secret"),
        (SECRET, b"\x1b[?1049h", "vim", "secret"),
        (RAW, b"\x1b[?1049h\x1b[2J", "vim", "screen"),
        (RAW, b"\x1b[?2004h$ ", "bash", "shell"),
        (RAW, b"\x1b[?1049hkilled\r\n$ ", "bash", "shell"),
        (LINES, b"\x1b[?1049hkilled\r\nName: ", "read", "line"),
        (None, b"\x1b[?1049h", "?", "screen"),
        (RAW, b">>> ", "python3", "line"),
        (RAW, b"\x1b[?2004hmysql", "mysql", "line"),
        (RAW, b"Passphrase: ", "ssh", "secret"),
        (RAW, b"Press any key", "read", "key"),
        (RAW, b"", "more", "key"),
        (RAW, b"more follows\n:", "less", "key"),
        (RAW, b"more follows\n:", "a process", "key"),
        (RAW, b"\x1b[3;5Hxx Go on?", "dialog", "screen"),
        (RAW, b"\x1b[3;5HPress any key", "setup", "key"),
        (RAW, b"\x1b[H\x1b[2J> ", "node", "line"),
        (RAW, b"... ", "node", "line"),
        (RAW, b"\x1b[3;5Hroot# ", "bash", "shell"),
        (RAW, b"", "bash", "shell"),
        (RAW, b"\x1b[?2004h$ read -n1\r\n\x1b[?2004l\r", "bash", "key"),
        (RAW, b"\x1b[?2004h% \x1b[?2004lGo on? ", "zsh", "line"),
        (RAW, b"\x1b[?2004h% vared x\r\n\x1b[?2004hx: ", "zsh", "shell"),
        (RAW, b"\x1b[?2004hpassword: ", "fish", "secret"),
        (RAW, b"\x1b[?2004hada@host ~/token> ", "fish", "shell"),
        (RAW, b"# ", "mksh", "shell"),
        (RAW, b"\x1b[?2004h? Pick (Use arrow keys)", "python3", "key"),
        (LINES, b"Type 'q' or <Esc> to continue ", "top", "line"),
        (RAW, b"Type 'q' or <Esc> to continue ", "top", "key"),
        (RAW, b"\x1b[?2004hPassword: \r\n\r\n\x1b[2A\x1b[10C", "python3", "secret"),
        (LINES, b"Password: ", "cat", "secret"),
        (LINES, b"Store password unencrypted (yes/no)?", "svn", "line"),
        (RAW, b"? Save password? (Y/n) ", "node", "line"),
        (RAW, b"\x1b[?2004htokens> ", "sqlite3", "line"),
        (RAW, b"MariaDB [secrets]> ", "mariadb", "line"),
        (RAW, b"\x1b[?2004hPath of the password file: ", "read", "line"),
        (RAW, b"\x1b[3;5HEnter your password\x1b[5;5H", "dialog", "secret"),
        (None, b"password: ", "?", "secret"),
        (None, b"Name: ", "?", "line"),
    ],
)
def test_kind_by_modes_then_program_then_text(
    flags: Flags | None, output: bytes, comm: str, kind: str
) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert prompt_kind(flags, modes, comm, NOBODY) == kind


def test_an_editor_that_showed_a_line_at_this_prompt_asks_for_no_secret() -> None:
    modes = OutputModes()
    modes.feed(b"password: ")
    assert prompt_kind(RAW, modes, "sqlite3", NOBODY) == "secret"
    assert prompt_kind(RAW, modes, "sqlite3", NOBODY, is_echoed=True) == "line"
    assert prompt_kind(SECRET, modes, "sqlite3", NOBODY, is_echoed=True) == "secret"


def test_a_shell_that_runs_a_script_asks_for_a_line() -> None:
    modes = OutputModes()
    modes.feed(b"$ ")
    # The interpreter of these tests runs a script, as any interpreter of tests does.
    assert prompt_kind(LINES, modes, "bash", os.getpid()) == "line"
