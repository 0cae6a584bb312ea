"""The kind of input at prompts of shells, line editors, forms and programs that draw."""

import shutil
from pathlib import Path

from tests.programs.truth.writing import SYSTEM_PYTHON, fixture, named, python, sh
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Ends, Scenario, Waits, as_user

_NO_PASTE = "echo 'set enable-bracketed-paste off' > inputrc"
_FIXTURE = (Path(__file__).parents[1] / "fixtures" / "own_prompts.py").read_text()


def shell(*argv: str, needs: str = "bash") -> Scenario:
    """Return a scenario of a shell with options that is left again."""
    return Scenario(
        " ".join(argv),
        argv,
        (
            Waits("[$#] $", "shell", b"read x\n"),
            Waits("", "line", b"\x03"),
            Waits("[$#] $", "shell"),
        ),
        needs=(needs,),
    )


def called(name: str, *steps: Waits | Ends) -> Scenario:
    """Return a scenario of a fixture whose process has the name of a shell."""
    start = f'printf %s "$CODE" > start; ln -s {SYSTEM_PYTHON} {name}; exec ./{name} -i'
    env = {"CODE": _FIXTURE, "OWN_PROMPTS": name, "PYTHONSTARTUP": "start"}
    return Scenario(f"reads of {name}", ("bash", "-c", start), steps, env=env)


_DRAWN = """
import os, tty
tty.setraw(0)
for asked in ("Name", "Password"):
    print(end=f"\x1b[?25l\u25c6  {asked}\\r\\n\u2502  ")
    print(end="\x1b[7m_\x1b[27m\\r\\n\u2514\\r\\n", flush=True)
    typed = ""
    while not typed.endswith("\\r"):
        typed += os.read(0, 99).decode()
        shown = typed.strip() if asked == "Name" else "*" * len(typed)
        print(end=f"\x1b[2A\\r\u2502  {shown}\x1b[7m \x1b[27m\x1b[2B\\r", flush=True)
"""


SHELLS = [
    shell("bash", "--rcfile", "/dev/null", "-i"),
    shell("bash", "--norc", "-o", "vi"),
    shell("bash", "--norc", "-O", "extglob"),
    shell("bash", "--norc", "-s", "word"),
    shell("env", "A=b", "bash", "--norc"),
    shell("bash", "-c", "exec -a -bash bash --norc --noprofile -o vi"),
    shell("dash", "-o", "vi", "-i", needs="dash"),
    Scenario("a script", sh("read -p 'sure# ' x"), (Waits("sure# $", "line", b"\n"), Ends())),
    Scenario(
        "a key for a script",
        sh("read -n1 -p 'Go on? [y/N] ' x"),
        (Waits(r"\[y/N\] $", "key", b"y"), Ends()),
    ),
    Scenario(
        "a read of bash without bracketed paste",
        sh(f"{_NO_PASTE}; INPUTRC=inputrc exec bash --norc"),
        (
            Waits("[$#] $", "shell", b"read -e x\n"),
            Waits(r"read -e x\r\n$", "line", b"a\n"),
            Waits("[$#] $", "shell", b"read -n1 -p 'Go on? ' x\n"),
            Waits(r"\nGo on\? $", "key", b"y"),
            Waits("[$#] $", "shell"),
        ),
    ),
    called(
        "ksh93",
        Waits("vm# $", "shell", b"read x\n"),
        Waits("read x\r+\n$", "line", b"a\n"),
        Waits("vm# $", "shell", b"read x?name:\n"),
        Waits("\nname:$", "line", b"a\n"),
        Waits("vm# $", "shell", b"ec"),
        Waits("ec$", "shell", b"\n"),
        Ends(),
    ),
    called(
        "zsh",
        Waits("vm# .*right", "shell", b"vared x\n"),
        Waits("old value", "line", b"a\n"),
        Waits("vm# .*right", "shell", b"\n"),
        Ends(),
    ),
]

EDITORS = [
    Scenario(
        "a hint of keys in a line editor",
        (
            "bash",
            "-c",
            f"{_NO_PASTE}; INPUTRC=inputrc exec {SYSTEM_PYTHON} -q",
        ),
        (
            Waits(">>> $", "line", b"input('(O)kay/(Q)uit? ')\n"),
            Waits(r"\n\(O\)kay/\(Q\)uit\? $", "line", b"q\n"),
            Waits(">>> $", "line", b"exit()\n"),
            Ends(),
        ),
    ),
    Scenario(
        "swipl",
        fixture("own_prompts.py", "swipl"),
        (
            Waits(r"\?- $", "line", b"member(X, [1, 2]).\n"),
            Waits("X = 1 $", "key", b";"),
            Waits(r"\?- $", "line", b"halt.\n"),
            Ends(),
        ),
    ),
    Scenario(
        "entries that are drawn, one of them masked",
        python(_DRAWN),
        (
            Waits("Name", "line", b"ada\r", "kernel|kernel+quiet"),
            Waits("Password", "secret", b"x\r", "kernel|kernel+quiet"),
            Ends(),
        ),
    ),
    Scenario("gforth", fixture("own_prompts.py", "gforth"), (Waits("", "line", b"bye\n"), Ends())),
    Scenario(
        "readline-sync",
        fixture("own_prompts.py", "readline_sync"),
        (
            Waits("Pass: $", "secret", b"ab"),
            Waits(r"\*\*$", "secret", b"\r"),
            Waits("Name . $", "line", b"ad"),
            Waits("ad$", "line", b"a\r"),
            Ends(),
        ),
    ),
]

SCREENS = [
    Scenario(
        "tmux without the alternate screen",
        sh(
            "echo \"set -g terminal-overrides '*:smcup@:rmcup@'\" > c; "
            "exec tmux -S s -f c new 'bash --norc'"
        ),
        (Waits(r"bash-\S*[$#] ", "screen", b"exit\n", "kernel|kernel+quiet"), Ends(None)),
        needs=("tmux",),
    ),
    Scenario(
        "ex",
        ("ex", "-u", "NONE", "{home}/new"),
        (Waits("\n:$", "line", b"q!\r", "kernel|kernel+quiet"), Ends()),
        needs=("ex",),
    ),
    Scenario(
        "joe",
        fixture("own_prompts.py", "joe"),
        (Waits("New File", "screen", b"q"), Waits("Lose", "screen", b"y"), Ends()),
    ),
    Scenario(
        "a form for a password",
        ("whiptail", "--passwordbox", "Enter your password", "8", "40"),
        (Waits("password.*Ok", "secret", b"ab\r", "kernel|kernel+quiet"), Ends(None)),
        needs=("whiptail",),
    ),
    Scenario(
        "a form for the name of a token",
        ("whiptail", "--inputbox", "Name of the token", "8", "40"),
        (Waits("token.*Ok", "screen", b"ab\r", "kernel|kernel+quiet"), Ends(None)),
        needs=("whiptail",),
    ),
    Scenario(
        "a relay that hides the input inside and shows it outside",
        ("unbuffer", "-p", "cat"),
        (Waits("", "line", b"x\n"), Waits("x", "line")),
        needs=("unbuffer",),
    ),
]


@named(SHELLS + EDITORS + SCREENS)
def test_kinds_as_the_user_of_the_tests(scenario: Scenario, home: Path) -> None:
    requires(*scenario.needs)
    assert scenario.play(str(home)) is None


@named(SHELLS + EDITORS + SCREENS)
def test_kinds_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None
