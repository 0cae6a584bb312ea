"""The kind of input follows from modes, program and text, in this order."""

import pytest

from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.prompt.kind import Known, prompt_kind
from controller_client.terminal_state.prompt.output_modes import OutputModes

LINES = Flags(is_echoing=True, is_canonical=True, is_polling=False)
SECRET = Flags(is_echoing=False, is_canonical=True, is_polling=False)
RAW = Flags(is_echoing=False, is_canonical=False, is_polling=False)
EDITED = RAW._replace(edits_lines=True)
KEYS = RAW._replace(is_echoing=True)
FORM = (
    b"\x1b[?1049h\x1b[9;31H\xe2\x94\x82 %s \xe2\x94\x82\x1b[10;31H\xe2\x94\x82   \xe2\x94\x82"
    b"\x1b[11;31H\xe2\x94\x82 ____ \xe2\x94\x82\x1b[14;31H\xe2\x94\x82 <Ok> \xe2\x94\x82\x1b[11;33H"
)
LIST = b"\x1b[?25l\x1b7\x1b[7ma\x1b[m b c \x1b[K\x1b8\x1b[?2004h"
EVERY_KEY = RAW._replace(takes_every_key=True)
ECHOED = Known(is_echoed=True)
ANSWERED = Known(has_answered_shell=True)


def unknown() -> list[str]:
    """The command line of a program that is gone."""
    return []


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
        (EDITED, b"Change (N)ame or (O)kay/(Q)uit? ", "gpg", "line"),
        (EDITED, b"Press any key: ", "python3", "line"),
        (EDITED, b"", "gforth", "line"),
        (EDITED, b"?- ", "swipl", "line"),
        (RAW, b"X = 1 ", "swipl", "key"),
        (EDITED, b"--More--", "gdb", "key"),
        (EDITED, b"Display all 99 possibilities? (y or n)", "gdb", "key"),
        (EDITED, b"Password: ", "python3", "secret"),
        (KEYS, b"Go on? [y/N] ", "read", "key"),
        (EDITED, b"\x1b[?2004h$ l\r\n--More--", "bash", "key"),
        (RAW, b"? Project name ", "node", "line"),
        (RAW, b"\x1b[?2004h\x1b[Htext\r\nstatus\x1b[H", "joe", "screen"),
        (EDITED, b"\x1b[3;9HTitle\x1b[5;9HName: ", "python3", "line"),
        (EDITED, b"\x1b[1;1Htext\r\nstatus\x1b[1;3H", "emacs", "screen"),
        (RAW, b"\x1b[?1049h\x1b[?2004h\x1b[24;1Hnew\r\r\n:", "ex", "line"),
        (RAW, b"\x1b[?1049h\x1b[1;1H~\x1b[24;1H:", "vim", "screen"),
        (RAW, b"\x1b7\x1b[99;1H\x1b[J\x1b8\r\n\x1b[A\x1b[K[?] Name: ", "python3", "line"),
        (RAW, "\x1b[?25l◆  API key\r\n│  _\r\n└\r\n".encode(), "node", "secret"),
        (RAW, "\x1b[?25l◆  Token\r\n│  ● A\r\n│  ○ B\r\n└\r\n".encode(), "node", "key"),
        (RAW, "\x1b[?2004h\x1b[?25lTrust?\r\n● 1. Yes\r\n  2. No\r\n".encode(), "node", "key"),
        (RAW, "\x1b[?2004h\x1b[?25l\u276f Ask me\r\n──────────────\r\n".encode(), "node", "line"),
        (RAW, "\x1b[?25l? Which …\r\n\u276f one\r\n  two\x1b[2A\x1b[9C".encode(), "node", "key"),
        (RAW, "? Which …\r\n\u276f one\r\n  two\x1b[2A\x1b[9C".encode(), "node", "line"),
        (EDITED, b"\x1b[?25l a  b  c\r", "smenu", "key"),
        (EVERY_KEY, b"\r\x1b[0K. \r\x1b[2C", "jimsh", "line"),
        (EVERY_KEY, b"memory D ", "duckdb", "line"),
        (EVERY_KEY, b"memory D ", "less", "key"),
        (EVERY_KEY, b"Press any key ", "node", "key"),
        (EVERY_KEY, b"\x1b[?25lCounting ", "node", "key"),
        (EVERY_KEY, b"page 1", "node", "key"),
        (EVERY_KEY, b"", "node", "key"),
        (RAW, b"memory D ", "duckdb", "key"),
        (EVERY_KEY, "\x1b[?25l◆  Name\r\n│  \x1b[7m_\x1b[27m\r\n".encode(), "node", "line"),
        (EVERY_KEY, "\x1b[?25l◆  Pin\r\n│  \x1b[7m_\x1b[27m\r\n".encode(), "node", "secret"),
        (RAW, LIST + b"\x1b[?1000;1006h", "smenu", "key"),
        (RAW, LIST + b"\x1b[?1000;1006h\x1b[?1000l", "smenu", "line"),
        (LINES, b"xo> ", "xonsh --no-rc -", "shell"),
        (RAW, b"?# ", "zsh", "shell"),
        (RAW, b"\x1b[?2004h% select a in b\r\n\x1b[?2004l1) b\r\n?# ", "zsh", "line"),
        (LINES, b"p$ ", "posh", "shell"),
        (LINES, b"% ", "bsd-csh", "shell"),
        (RAW, FORM % b"Your password", "whiptail", "secret"),
        (RAW, FORM % b"Name of the token", "whiptail", "screen"),
        (RAW, FORM % b"Your password" + b"\x1b[?25l", "htop", "screen"),
        (RAW, b"\x1b[?1049h\x1b[1;1HPassword:\x1b[3;1H", "vim", "screen"),
        (RAW, b"\x1b[3;5HName of the token\x1b[5;5H", "whiptail", "screen"),
        (None, b"password: ", "?", "secret"),
        (None, b"Name: ", "?", "line"),
    ],
)
def test_kind_by_modes_then_program_then_text(
    flags: Flags | None, output: bytes, comm: str, kind: str
) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert prompt_kind(flags, modes, comm, unknown) == kind


def test_a_multiplexer_shows_a_screen_whatever_runs_in_it() -> None:
    modes = OutputModes()
    modes.feed(b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?2004ht$ ")
    assert prompt_kind(EDITED, modes, "screen", unknown) == "line"
    assert prompt_kind(EDITED, modes, "screen", unknown, Known(draws_for_others=True)) == "screen"


def test_an_editor_that_showed_a_line_at_this_prompt_asks_for_no_secret() -> None:
    modes = OutputModes()
    modes.feed(b"password: ")
    assert prompt_kind(RAW, modes, "sqlite3", unknown) == "secret"
    assert prompt_kind(RAW, modes, "sqlite3", unknown, ECHOED) == "line"
    assert prompt_kind(SECRET, modes, "sqlite3", unknown, ECHOED) == "secret"


def test_a_shell_that_runs_a_script_asks_for_a_line() -> None:
    modes = OutputModes()
    modes.feed(b"$ ")
    words = ["bash", "ask.sh"]
    assert prompt_kind(LINES, modes, "bash", lambda: words) == "line"
    assert prompt_kind(LINES, modes, "bash", lambda: words[:1]) == "shell"


@pytest.mark.parametrize(
    ("output", "comm", "known", "kind"),
    [
        (b"name:", "ksh93", ANSWERED, "line"),
        (b"", "ksh93", ANSWERED, "line"),
        (b"", "ksh93", Known(), "shell"),
        (b"\x1b[?2004hq", "zsh", ANSWERED, "line"),
        (b"\x1b[?2004hread> ", "fish", ANSWERED, "line"),
        (b"vm# ", "zsh", ANSWERED, "shell"),
        (b"vm# ec", "zsh", Known(None, "shell", has_answered_shell=True), "shell"),
        (b"Password", "zsh", ANSWERED, "secret"),
    ],
)
def test_a_shell_that_was_given_a_command_reads_for_the_command(
    output: bytes, comm: str, known: Known, kind: str
) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert prompt_kind(EDITED, modes, comm, unknown, known) == kind


def test_a_prompt_with_input_behind_it_keeps_its_kind() -> None:
    modes = OutputModes()
    modes.feed("? Name \u203a ad".encode())
    assert prompt_kind(RAW, modes, "node", unknown, Known(continued="line")) == "line"
    modes.feed("\r\nName? \u203a ad".encode())
    assert prompt_kind(RAW, modes, "node", unknown) == "key"
