"""The watcher against programs whose truth is known, as root and as an ordinary user with sudo."""

import shutil
from pathlib import Path

from tests.programs.truth.writing import (
    QUIET,
    SYSTEM_PYTHON,
    fixture,
    named,
    python,
    sh,
    shell_session,
)
from tests.support.accounts import Account, requires
from tests.support.hosts.truth import Ends, Scenario, Waits, Works, as_user

READERS = [
    Scenario(
        "cat",
        ("cat",),
        (Waits("", "line", b"hello\n"), Waits("hello\r\nhello\r\n$", "line", b"\x04"), Ends()),
    ),
    Scenario(
        "read -p and read -s",
        sh("sleep 0.3; read -p 'Name: ' x; echo hi $x; sleep 0.3; read -sp 'Secret: ' y; exit 3"),
        (
            Waits("Name: $", "line", b"joe\n"),
            Waits("hi joe\r\nSecret: $", "secret", b"zz\n"),
            Ends(3),
        ),
    ),
    Scenario(
        "a read that times out",
        sh("read -t 1 -p 'Quick: ' x; sleep 0.3"),
        (Waits("Quick: $", "line", evidence="kernel+quiet"),),
    ),
    Scenario(
        "read of one key",
        sh("read -n1 -s -p 'Press any key' k"),
        (Waits("any key$", "key|secret", b"x"), Ends()),
    ),
    Scenario(
        "half a line",
        sh("read -p 'q: ' x; echo \"<$x>\""),
        (Waits("q: $", "line", b"ab"), Waits("ab$", "line", b"c\n"), Ends()),
    ),
    Scenario(
        "select menu",
        sh("select x in a b c; do echo got $x; break; done"),
        (Waits(r"#\? $", "line", b"2\n"), Ends()),
    ),
    Scenario("rm -i", sh("touch zap; rm -i zap"), (Waits(r"zap'\? $", "line", b"y\n"), Ends())),
    Scenario(
        "input()",
        python("import time; time.sleep(.3); x=input('age? '); time.sleep(.3)"),
        (Waits(r"age\? $", "line", b"4\n"), Ends()),
    ),
    Scenario(
        "getpass",
        python("import getpass; getpass.getpass('Token: ')"),
        (Waits("Token: $", "secret", b"4\n"), Ends()),
    ),
    Scenario(
        "openssl pass phrase",
        ("openssl", "genrsa", "-aes256", "-out", "/dev/null", "2048"),
        (
            Waits("pass phrase:$", "secret", b"abcd1\n"),
            Waits("pass phrase:$", "secret", b"abcd1\n"),
            Ends(),
        ),
        needs=("openssl",),
    ),
    Scenario(
        "ssh-keygen",
        ("ssh-keygen", "-t", "ed25519", "-f", "{home}/key"),
        (
            Waits(r"passphrase[^:]*: $", "secret", b"abc12\n"),
            Waits("again: $", "secret", b"abc12\n"),
            Ends(),
        ),
        needs=("ssh-keygen",),
    ),
    Scenario(
        "reader without a terminal of its own",
        ("setsid", "-w", *sh("read -p 'Name: ' x; sleep 0.4")),
        (Waits("Name: $", "line", b"q\n"), Ends()),
    ),
    Scenario(
        "reader behind a pipe",
        sh("cat | cat"),
        (Waits("", "line", b"a\n"), Waits("a\r\na\r\n$", "line", b"\x04"), Ends()),
    ),
]

SHELLS = [
    Scenario("bash", ("bash", "--norc", "-i"), shell_session("[$#] ")),
    Scenario("dash", ("dash", "-i"), shell_session("[$#] "), needs=("dash",)),
    Scenario(
        "a shell without a terminal of its own",
        ("setsid", "-w", "bash", "--norc", "-i"),
        (Waits("[$#] $", "shell", b"sleep 0.5\n"), Waits("[$#] $", "shell", b"exit 0\n"), Ends()),
    ),
    Scenario(
        "typed ahead",
        ("bash", "--norc", "-i"),
        (
            Waits("[$#] $", "shell", b"sleep 0.4; sleep 0.4\necho A$((1))A\n"),
            Waits("A1A\r\n.*[$#] $", "shell", b"exit\n"),
            Ends(),
        ),
    ),
    Scenario(
        "python REPL",
        (SYSTEM_PYTHON, "-q"),
        (
            Waits(">>> $", "line", b"import time; time.sleep(0.4)\n"),
            Waits(r"sleep\(0.4\)\r\n.*>>> $", "line", b"input('x? ')\n"),
            Waits(r"\r\n.*x\? $", "line", b"1\n"),
            Waits(">>> $", "line", b"exit()\n"),
            Ends(),
        ),
    ),
    Scenario(
        "node REPL, a block",
        ("node",),
        (
            Waits("> .*$", "line", b"if (1) {\n", QUIET),
            Waits(r"\.\.\. ", "line", b"}\n", QUIET),
            Waits("> .*$", "line", b".exit\n", QUIET),
            Ends(),
        ),
        needs=("node",),
    ),
    Scenario(
        "sqlite3",
        ("sqlite3",),
        (Waits("sqlite> $", "line", b".quit\n"), Ends()),
        needs=("sqlite3",),
    ),
    Scenario(
        "node REPL",
        ("node",),
        (
            Waits(
                "> .*$",
                "line",
                b"const t=Date.now(); while(Date.now()-t<400);0\n",
                evidence="kernel|kernel+quiet",
            ),
            Waits(r"(?s)\r\n.*0.*> ", "line", b".exit\n", evidence="kernel|kernel+quiet"),
            Ends(),
        ),
        needs=("node",),
    ),
    Scenario(
        "gdb",
        ("gdb", "-q", "-nx"),
        (Waits(r"\(gdb\) $", "line", b"quit\n", "kernel|kernel+quiet"), Ends()),
        needs=("gdb",),
    ),
]

SCREENS = [
    Scenario(
        "vim",
        ("vim", "-u", "NONE", "{home}/zz"),
        (
            Waits("zz", "screen", b":sleep 700m\r", "kernel|kernel+quiet"),
            Works(0.6),
            Waits("", "screen", b":q!\r", "kernel|kernel+quiet"),
            Ends(),
        ),
        needs=("vim",),
    ),
    Scenario(
        "less",
        sh("seq 1 500 > big.txt; less big.txt"),
        (Waits("big.txt", "screen", b"q"), Ends()),
        needs=("less",),
    ),
    Scenario(
        "more",
        sh("seq 1 500 > big.txt; more big.txt"),
        (Waits("More", "key|line", b"q", "kernel|kernel+quiet"), Ends()),
        needs=("more",),
    ),
    Scenario(
        "nano",
        ("nano", "-I", "{home}/new"),
        (Waits("GNU nano.*Exit", "screen", b"\x18"), Ends()),
        needs=("nano",),
    ),
    Scenario(
        "top",
        ("top",),
        (Waits("PID.*COMMAND", "screen|key", b"q", "kernel+quiet"), Ends()),
        needs=("top",),
    ),
    Scenario(
        "whiptail",
        ("whiptail", "--yesno", "Go?", "8", "40"),
        (Waits("Go.*No", "screen|key", b"\r"), Ends()),
        needs=("whiptail",),
    ),
    Scenario(
        "dialog",
        ("dialog", "--yesno", "Go?", "7", "40"),
        (Waits("Go", "screen", b"\t"), Waits("", "screen", b"\r"), Ends(1)),
        needs=("dialog",),
    ),
    Scenario(
        "the pager of git",
        sh("git init -q . && seq 500 > n && git add n && git diff --cached"),
        (Waits(":[^\n]*$", "key", b" "), Waits(":[^\n]*$", "key", b"q"), Ends()),
        needs=("git", "less"),
    ),
    Scenario(
        "screen",
        (
            *("env", "SCREENDIR={home}", "screen", "-c", "/dev/null"),
            *("sh", "-c", "read -p 'Name: ' x; echo $x; read y"),
        ),
        (
            Waits("Name: ", "screen", b"q\n"),
            Waits("", "screen", b"\n"),
            Ends(None),
        ),
        needs=("screen",),
    ),
    Scenario("curses", fixture("curses_key.py"), (Waits("to continue", "screen", b"x"), Ends())),
]

RELAYS = [
    Scenario(
        "script",
        ("script", "-qc", "sleep 0.3; read -p 'q? ' x; sleep 0.3", "/dev/null"),
        (Waits(r"q\? $", "line", b"1\n"), Ends()),
        needs=("script",),
    ),
    Scenario(
        "script with a secret",
        (
            "script",
            "-qc",
            "bash -c \"read -sp 'Secret: ' x; sleep 0.3; read -p 'Then: ' y\"",
            "/dev/null",
        ),
        (Waits("Secret: $", "secret", b"1\n"), Waits("Then: $", "line", b"1\n"), Ends()),
        needs=("script",),
    ),
    Scenario(
        "script in script",
        ("script", "-qc", "script -qc 'sleep 0.3; cat' /dev/null", "/dev/null"),
        (Waits("", "line", b"one\n"), Waits("one\r\none\r\n$", "line", b"\x04"), Ends()),
        needs=("script",),
    ),
    Scenario(
        "expect",
        ("expect", "-c", "spawn bash -c {sleep 0.3; read -p 'q? ' x; sleep 0.3}; interact"),
        (Waits(r"q\? $", "line", b"1\n"), Ends()),
        needs=("expect",),
    ),
    Scenario(
        "a working program behind script",
        ("script", "-qc", "printf 'Continue? [y/N] '; sleep 2", "/dev/null"),
        (Works(1.8, after="y/N"), Ends()),
        needs=("script",),
    ),
]

NODE_QUESTIONS = """
const rl = require('readline').createInterface({input: process.stdin, output: process.stdout})
rl.question('name? ', () => setTimeout(() => rl.question('age? ', () => rl.close()), 600))
"""

EVENT_LOOPS = [
    Scenario(
        "an event loop of its own",
        fixture("loop_at_work.py", "nothing"),
        (Waits("name> $", "line", b"joe\n"), Ends()),
    ),
    *(
        Scenario(
            f"an event loop with a {work}",
            fixture("loop_at_work.py", work),
            (Waits("name> $", "line"),),
        )
        for work in ("child", "detached child", "thread", "connection", "timer")
    ),
    Scenario(
        "input() in a thread of an event loop",
        python(
            "import asyncio\nasync def m(): await "
            "asyncio.get_running_loop().run_in_executor(None, input, 'age? ')\nasyncio.run(m())"
        ),
        (Waits(r"age\? $", "line", b"4\n"), Ends()),
    ),
    Scenario(
        "readline of node",
        ("node", "-e", NODE_QUESTIONS),
        (
            Waits(r"name\? [^\n]*$", "line", b"joe\n", "kernel|kernel+quiet"),
            Waits(r"joe\r.*age\? [^\n]*$", "line", b"4\n", "kernel|kernel+quiet"),
            Ends(),
        ),
        needs=("node",),
    ),
    Scenario(
        "asyncio",
        fixture("event_loop.py"),
        (Waits("name> $", "line", b"joe\n", "heuristic"), Ends()),
    ),
    Scenario(
        "a thread that answers for the reader",
        fixture("hands_over.py"),
        (Waits("", "line", b"q\n", QUIET), Waits("<q>", "line", b"\x04", QUIET)),
    ),
    Scenario(
        "a busy thread",
        fixture("worker_thread.py"),
        (Waits("line> $", "line", b"x\n", "heuristic"), Ends()),
    ),
]

WORKERS = [
    Scenario(
        "sleep after a question",
        sh("echo -n 'Continue? [y/N] '; sleep 1"),
        (Works(0.7, after="y/N"), Ends()),
    ),
    Scenario(
        "sleep with echo off",
        sh("stty -echo; echo -n 'Password: '; sleep 1; stty echo"),
        (Works(0.7, after="Password"), Ends()),
    ),
    Scenario(
        "computing after a question",
        python(
            "import time\nprint('Password: ',end='',flush=True);t=time.time()\n"
            "while time.time()-t<1: pass"
        ),
        (Works(0.7, after="Password"), Ends()),
    ),
    Scenario(
        "network after a question",
        python(
            "import socket,threading\na,b=socket.socketpair()\nprint('> ',end='',flush=True)\n"
            "threading.Timer(1,lambda:b.send(b'x')).start();a.recv(1)"
        ),
        (Works(0.7, after="> "), Ends()),
    ),
    Scenario(
        "child after a question",
        sh("echo -n 'ok? '; (exec sleep 1) ; true"),
        (Works(0.7, after="ok"), Ends()),
    ),
    Scenario("silent pipeline", sh("(sleep 1; echo x) | grep x | sort"), (Works(0.9), Ends())),
    Scenario(
        "output of a child now and then",
        sh('for i in 1 2 3 4; do echo -n "$i? "; sleep 0.3; done'),
        (Works(1.1), Ends()),
    ),
    Scenario(
        "tail -f", sh("seq 5 > t; timeout --foreground 1.5 tail -f t; true"), (Works(1.3), Ends())
    ),
    Scenario(
        "watch",
        sh("timeout --foreground 2 watch -n 1 date; true"),
        (Works(1.7), Ends(None)),
        needs=("watch",),
    ),
    Scenario("glancing at the keyboard", fixture("key_poll.py", "1.5"), (Works(1.2), Ends())),
    Scenario(
        "lock",
        sh("flock lk sleep 1 & sleep 0.2; echo -n 'name: '; flock lk true"),
        (Works(0.5, after="name"), Ends()),
    ),
    Scenario(
        "full pipe",
        sh("echo -n 'sure? '; yes | (sleep 1; head -1 >/dev/null); true"),
        (Works(0.9), Ends()),
    ),
]

ORDINARY = READERS + SHELLS + SCREENS + RELAYS + EVENT_LOOPS + WORKERS


@named(ORDINARY)
def test_truth_as_the_user_of_the_tests(scenario: Scenario, home: Path) -> None:
    requires(*scenario.needs)
    assert scenario.play(str(home)) is None


@named(ORDINARY)
def test_truth_as_an_ordinary_user(scenario: Scenario, home: Path, user: Account) -> None:
    requires(*scenario.needs)
    shutil.chown(home, user.name)
    assert as_user(user, lambda: scenario.play(str(home))) is None
