"""Input functions of scripting languages."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows

_PYTHON = "/usr/bin/python3"


def questions(code: str) -> dict[str, str]:
    return {"ask": code}


EVERYDAY = (
    scripted(
        "read",
        'sleep 0.2; read -rp "Name: " x; sleep 0.2; read -rp "Age? " y; exit 4',
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(4),
    ),
    scripted(
        "read without an echo",
        'read -rsp "Code word: " x; echo; sleep 0.3; read -rp "Next: "',
        asks("Code word: ", "a\n", "secret"),
        asks("Next: ", "\n"),
        ends(),
    ),
    scripted(
        "read of three characters",
        'read -rn3 -p "abc? " x; sleep 0.2; echo; echo "$x"',
        asks("abc? ", "xyz", "line|key"),
        ends(),
    ),
    scripted(
        "read up to a mark",
        'read -rd . -p "Text: " x; sleep 0.2',
        asks("Text: ", "one\n", "line|key"),
        shows("one", "two.", "line|key"),
        ends(),
    ),
    scripted(
        "read with an editor", 'read -rep "Name: " x; sleep 0.2', asks("Name: ", "ada\n"), ends()
    ),
    scripted(
        "read in a loop",
        'while read -rp "n: " n && [ "$n" ]; do sleep 0.1; echo got "$n"; done',
        *(asks("n: ", f"{n}\n") for n in range(4)),
        asks("n: ", "\n"),
        ends(),
    ),
    scripted(
        "select",
        'PS3="Which? "; select x in red green quit; do [ $x = quit ] && break; done',
        asks("Which? ", "1\n"),
        asks("Which? ", "3\n"),
        ends(),
    ),
    scripted(
        "mapfile",
        'echo "End with Ctrl-D:"; mapfile x; echo ${#x[@]}',
        shows("Ctrl-D:\r\n", "a\n", "line"),
        shows("a\r\n", "\x04", "line"),
        ends(),
    ),
    runs(
        "input()",
        f"{_PYTHON} ask",
        asks("Name: ", "a\n"),
        asks("Sure? [y/N] ", "y\n"),
        ends(2),
        files=questions(
            "import sys, time\ninput('Name: ')\ntime.sleep(.3)\n"
            "input('Sure? [y/N] ')\nsys.exit(2)\n"
        ),
    ),
    runs(
        "input() with readline",
        f"{_PYTHON} ask",
        asks("Name: ", "a\n"),
        asks("Again: ", "b\n"),
        ends(),
        files=questions(
            "import readline, time\ninput('Name: ')\ntime.sleep(.3)\ninput('Again: ')\n"
        ),
    ),
    runs(
        "sys.stdin.readline()",
        f"{_PYTHON} ask",
        asks("Name> ", "a\n"),
        ends(),
        files=questions(
            "import sys, time\nsys.stdout.write('Name> ')\n"
            "sys.stdout.flush()\nsys.stdin.readline()\ntime.sleep(.3)\n"
        ),
    ),
    runs(
        "getpass",
        f"{_PYTHON} ask",
        asks("Password: ", "a\n", "secret"),
        asks("PIN for card: ", "b\n", "secret"),
        ends(),
        files=questions(
            "import getpass, time\ngetpass.getpass()\ntime.sleep(.3)\n"
            "getpass.getpass('PIN for card: ')\n"
        ),
    ),
    runs(
        "termios and one key",
        f"{_PYTHON} ask",
        asks("Continue (any key)", "x", "key"),
        ends(),
        files=questions(
            "import sys, termios, tty\nold = termios.tcgetattr(0)\n"
            "print('Continue (any key)', end='', flush=True)\n"
            "tty.setraw(0)\nsys.stdin.read(1)\ntermios.tcsetattr(0, 0, old)\n"
        ),
    ),
    runs(
        "perl <STDIN>",
        "perl ask",
        asks("Name: ", "a\n"),
        asks("Go on? (y/n) ", "y\n"),
        ends(),
        files=questions(
            "$| = 1; print 'Name: '; <STDIN>; select undef, undef, undef, .3;\n"
            "print 'Go on? (y/n) '; <STDIN>;\n"
        ),
    ),
    runs(
        "awk getline",
        (
            'awk \'BEGIN { printf "Name: "; getline x < "-"; system("sleep 0.3"); printf '
            '"Age: "; getline y < "-" }\''
        ),
        asks("Name: ", "a\n"),
        asks("Age: ", "4\n"),
        ends(),
    ),
    runs(
        "node readline",
        "node ask",
        asks("Name? ", "a\n"),
        asks("Age? ", "4\n"),
        ends(),
        files=questions(
            "const rl = require('readline').createInterface({input: process.stdin, "
            "output: process.stdout})\nrl.question('Name? ', () => setTimeout(() => "
            "rl.question('Age? ', () => rl.close()), 400))\n"
        ),
    ),
    runs(
        "node readline/promises",
        "node ask.mjs",
        asks("Name? ", "a\n"),
        asks("Age? ", "4\n"),
        ends(),
        files={
            "ask.mjs": (
                "import * as r from 'node:readline/promises'\n"
                "import { setTimeout as s } from 'node:timers/promises'\n"
                "const rl = r.createInterface({input: process.stdin, output: "
                "process.stdout})\nawait rl.question('Name? ')\n"
                "await s(400)\nawait rl.question('Age? ')\nrl.close()\n"
            )
        },
    ),
    runs(
        "node, synchronously",
        "node ask",
        asks("Name? ", "a\n"),
        ends(),
        files=questions(
            "const fs = require('fs')\nprocess.stdout.write('Name? ')\n"
            "fs.readSync(0, Buffer.alloc(100))\nAtomics.wait(new Int32Array(new "
            "SharedArrayBuffer(4)), 0, 0, 300)\n"
        ),
    ),
    runs(
        "expect_user",
        "expect ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions(
            "set timeout -1\nsend_user {Name: }\nexpect_user -re {(.*)\\n}\nafter 300\n"
        ),
    ),
    runs(
        "tcl gets",
        "tclsh ask",
        asks("Name: ", "a\n"),
        asks("Age: ", "4\n"),
        ends(),
        files=questions(
            "puts -nonewline {Name: }; flush stdout; gets stdin; after 300\n"
            "puts -nonewline {Age: }; flush stdout; gets stdin\n"
        ),
    ),
)
ALL = (
    runs(
        "ruby gets",
        "ruby ask",
        asks("Name: ", "a\n"),
        asks("Age: ", "4\n"),
        ends(),
        files=questions("print 'Name: '; gets; sleep 0.3; print 'Age: '; gets\n"),
    ),
    runs(
        "ruby io/console",
        "ruby ask",
        asks("Password: ", "a\n", "secret"),
        asks("Press a key", "x", "key|secret"),
        ends(),
        files=questions(
            "require 'io/console'\nIO.console.getpass('Password: ')\n"
            "print 'Press a key'; $stdin.getch\n"
        ),
    ),
    runs(
        "ruby Reline",
        "ruby ask",
        asks("Name> ", "a\n"),
        ends(),
        files=questions("require 'reline'\nReline.readline('Name> ')\nsleep 0.3\n"),
    ),
    runs(
        "lua io.read",
        "lua5.4 ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions("io.write('Name: '); io.flush(); io.read(); os.execute('sleep 0.3')\n"),
    ),
    runs(
        "luajit io.read",
        "luajit ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions("io.write('Name: '); io.flush(); io.read(); os.execute('sleep 0.3')\n"),
    ),
    runs(
        "jimsh gets",
        "jimsh ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions("puts -nonewline {Name: }; flush stdout; gets stdin; after 300\n"),
    ),
    runs(
        "php fgets",
        "php ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions("<?php echo 'Name: '; fgets(STDIN); usleep(300000);\n"),
    ),
    runs(
        "php readline",
        "php ask",
        asks("Name: ", "a\n"),
        asks("Age: ", "4\n"),
        ends(),
        files=questions("<?php readline('Name: '); usleep(300000); readline('Age: ');\n"),
    ),
    runs(
        "java Scanner",
        "java Ask.java",
        asks("Name: ", "a\n"),
        ends(),
        files={
            "Ask.java": (
                "class Ask { public static void main(String[] a) throws Exception { "
                'System.out.print("Name: "); System.out.flush(); new '
                "java.util.Scanner(System.in).nextLine(); Thread.sleep(300); } }\n"
            )
        },
    ),
    runs(
        "java Console",
        "java Ask.java",
        asks("Name: ", "a\n"),
        asks("Password: ", "b\n", "secret"),
        ends(),
        files={
            "Ask.java": (
                "class Ask { public static void main(String[] a) throws Exception { "
                'System.console().readLine("Name: "); Thread.sleep(300); '
                'System.console().readPassword("Password: "); } }\n'
            )
        },
    ),
    runs(
        "bc read()",
        "bc -q ask",
        shows("", "4\n", "line"),
        shows("5", "quit\n", "line"),
        ends(),
        files=questions("x = read()\nx + 1\n"),
    ),
    runs(
        "guile read-line",
        "guile --no-auto-compile ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions(
            '(use-modules (ice-9 rdelim))\n(display "Name: ") (force-output) '
            "(read-line) (usleep 300000)\n"
        ),
    ),
    runs(
        "swipl read_term",
        "swipl -q ask",
        asks("Name: ", "a.\n"),
        ends(),
        files=questions(
            ":- initialization((write('Name: '), flush_output, "
            "read_line_to_string(user_input, _), sleep(0.3), halt)).\n"
        ),
    ),
    runs(
        "gforth accept",
        "gforth ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions('." Name: " pad 20 accept drop 300 ms bye\n'),
    ),
    runs(
        "ocaml read_line",
        "ocaml ask.ml",
        asks("Name: ", "a\n"),
        ends(),
        files={
            "ask.ml": (
                'print_string "Name: "; flush stdout; ignore (read_line ()); ignore '
                '(Sys.command "sleep 0.3")\n'
            )
        },
    ),
    runs(
        "gawk getline from the terminal",
        'gawk \'BEGIN { printf "Name: "; getline x < "/dev/tty"; system("sleep 0.3") }\'',
        asks("Name: ", "a\n"),
        ends(),
    ),
    runs(
        "sbcl read-line",
        "sbcl --script ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions('(format t "Name: ") (finish-output) (read-line) (sleep 0.3)\n'),
    ),
    runs(
        "erlang io:get_line",
        "escript ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions(
            '#!/usr/bin/env escript\nmain(_) -> io:get_line("Name: "), timer:sleep(300).\n'
        ),
    ),
    runs(
        "yabasic INPUT",
        "yabasic ask",
        asks("Name: ", "a\n"),
        ends(),
        files=questions('input "Name: " a$\nsleep 0.3\n'),
    ),
    runs(
        "a C program with scanf",
        "./asks",
        asks("Number: ", "4\n"),
        ends(),
        first="gcc -o asks ask.c",
        needs="gcc",
        files={
            "ask.c": (
                "#include <stdio.h>\n#include <unistd.h>\nint main(void) { int n; "
                'printf("Number: "); fflush(stdout); if (scanf("%d", &n)) usleep(300000); '
                "}\n"
            )
        },
    ),
    runs(
        "tsx",
        "{node}/tsx ask.ts",
        asks("Name? ", "a\n"),
        ends(),
        files={
            "ask.ts": (
                "import * as rl from 'readline'\nconst r: rl.Interface = "
                "rl.createInterface({input: process.stdin, output: process.stdout})\n"
                "r.question('Name? ', () => setTimeout(() => r.close(), 300))\n"
            )
        },
    ),
)
