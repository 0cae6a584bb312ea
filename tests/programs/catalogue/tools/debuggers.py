"""Debuggers of several languages, at their prompt and while the program runs."""

from tests.programs.catalogue.program import asks, ends, runs, shows

_PY = {"go.py": "import time\nx = 1\ntime.sleep(0.4)\nname = input('Name: ')\nprint(name)\n"}
_C = {
    "go.c": (
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) { char s[9]; "
        'usleep(400000); printf("Name: "); fflush(stdout); fgets(s, 9, stdin); return 3; '
        "}\n"
    )
}
_JS = {"go.js": "let x = 1\nconst t = Date.now()\nwhile (Date.now() - t < 400);\nx = 2\n"}
EVERYDAY = (
    runs(
        "gdb",
        "gdb -q -nx",
        asks("(gdb) ", "shell sleep 0.4\n"),
        asks("(gdb) ", "print 1+1\n"),
        asks("(gdb) ", "quit\n"),
        ends(),
    ),
    runs(
        "gdb that runs a program",
        "gdb -q -nx --args bash ask",
        asks("(gdb) ", "set startup-with-shell off\n"),
        asks("(gdb) ", "run\n"),
        asks("Name: ", "a\n"),
        asks("(gdb) ", "quit\n"),
        ends(),
        env={"DEBUGINFOD_URLS": ""},
        files={"ask": "sleep 0.4; read -p 'Name: ' x\n"},
    ),
    runs(
        "pdb",
        "/usr/bin/python3 -m pdb go.py",
        asks("(Pdb) ", "n\n"),
        asks("(Pdb) ", "c\n"),
        asks("Name: ", "a\n"),
        asks("(Pdb) ", "q\n"),
        ends(),
        files=_PY,
    ),
    runs(
        "breakpoint()",
        "/usr/bin/python3 go.py",
        asks("(Pdb) ", "c\n"),
        asks("Name: ", "a\n"),
        ends(),
        files={"go.py": "breakpoint()\nimport time\ntime.sleep(.3)\ninput('Name: ')\n"},
    ),
    runs(
        "node inspect",
        "node inspect --port=0 go.js",
        asks("debug> ", "n\n"),
        asks("debug> ", "c\n"),
        shows("Waiting for the debugger to disconnect.*debug> ", ".exit\n", "line"),
        ends(None),
        files=_JS,
    ),
    runs(
        "perl -d",
        "perl -d -e 'select undef,undef,undef,.4; print 1'",
        asks("DB<0> ", "n\n"),
        asks("DB<0> ", "q\n"),
        ends(),
        env={"PERLDB_OPTS": "HistFile=/dev/null"},
    ),
)
ALL = (
    runs(
        "gdb with a text interface",
        "gdb -q -nx -tui",
        shows(r"\(gdb\) ", "quit\r", "line|screen"),
        ends(),
    ),
    runs(
        "gdb on a program in C",
        "gdb -q -nx ./go",
        asks("(gdb) ", "break main\n"),
        asks("(gdb) ", "run\n"),
        asks("(gdb) ", "continue\n"),
        asks("Name: ", "a\n"),
        asks("(gdb) ", "quit\n"),
        ends(),
        first="gcc -g -o go go.c",
        needs="gdb gcc",
        files=_C,
        env={"DEBUGINFOD_URLS": ""},
    ),
    runs(
        "ipdb",
        "{python}/python -m ipdb go.py",
        shows("ipdb>", "n\r", "line"),
        shows(r"\n.*ipdb>", "c\r", "line"),
        asks("Name: ", "a\n"),
        shows(r"\n.*ipdb>", "q\r", "line"),
        ends(None),
        files=_PY,
    ),
    runs("pudb", "{python}/python -m pudb go.py", shows("Command line", None, "screen"), files=_PY),
    runs("jdb", "jdb", asks("> ", "help\n"), asks("> ", "quit\n"), ends()),
    runs(
        "a traced program",
        "strace -f -o trace bash -c 'sleep 0.4; read -p \"Name: \" x'",
        asks("Name: ", "a\n"),
        ends(),
        needs="strace",
    ),
    runs(
        "valgrind",
        "valgrind -q ./go",
        asks("Name: ", "a\n"),
        ends(3),
        first="gcc -g -o go go.c",
        needs="gcc valgrind",
        files=_C,
    ),
)
