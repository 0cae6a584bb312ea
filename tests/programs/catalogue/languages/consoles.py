"""Consoles of languages: they read, evaluate and print."""

from tests.programs.catalogue.program import asks, ends, runs, shows
from tests.support.hosts.truth import Ends, Waits, Works


def console(
    prompt: str, work: str, leave: str, status: int | None = 0
) -> tuple[Waits | Works | Ends, ...]:
    """Return the steps of a console that works for a while, evaluates once more and is left."""
    return (asks(prompt, work), asks(prompt, leave), ends(status))


_SLEEP = "import time; time.sleep(0.4)\n"
EVERYDAY = (
    runs(
        "python",
        "/usr/bin/python3 -q",
        asks(">>> ", _SLEEP),
        asks(">>> ", "if 1:\n"),
        asks("... ", "  print(2)\n"),
        asks("... ", "\n"),
        asks(">>> ", "input('Name? ')\n"),
        asks("Name? ", "a\n"),
        asks(">>> ", "exit()\n"),
        ends(),
    ),
    runs(
        "python without readline",
        '/usr/bin/python3 -q -c \'import code; code.interact(banner="", exitmsg="")\'',
        asks(">>> ", _SLEEP),
        asks(">>> ", "\x04"),
        ends(),
    ),
    runs(
        "python -i",
        "/usr/bin/python3 -i -c 'import time; time.sleep(.3)'",
        asks(">>> ", "quit()\n"),
        ends(),
    ),
    runs(
        "node",
        "node",
        asks("> ", "const t = Date.now(); while (Date.now() - t < 400);\n"),
        asks("> ", "[1, 2].map(x => {\n"),
        asks("... ", "return x })\n"),
        asks("> ", ".exit\n"),
        ends(),
    ),
    runs(
        "node without a line editor",
        "node",
        asks("> ", "1 + 1\n"),
        asks("> ", ".exit\n"),
        ends(),
        env={"NODE_NO_READLINE": "1"},
    ),
    runs("tclsh", "tclsh", asks("% ", "after 400\n"), asks("% ", "exit\n"), ends()),
    runs(
        "expect",
        "expect",
        asks("expect1.1> ", "after 400\n"),
        asks("expect1.2> ", "exit\n"),
        ends(),
    ),
    runs(
        "perl -de 0",
        "perl -de 0",
        asks("DB<0> ", "select undef, undef, undef, .4\n"),
        asks("DB<1> ", "q\n"),
        ends(),
        env={"PERLDB_OPTS": "HistFile=/dev/null"},
    ),
)
ALL = (
    runs(
        "ipython",
        "ipython3 --no-banner --no-confirm-exit",
        shows(r"In.*\[.*1.*\]:", "import time; time.sleep(0.4)\r", "line"),
        shows(r"\n.*In.*\[.*2.*\]:", "exit()\r", "line"),
        ends(),
    ),
    runs(
        "ipython --simple-prompt",
        "ipython3 --no-banner --no-confirm-exit --simple-prompt",
        asks("In [1]: ", _SLEEP),
        asks("In [2]: ", "exit()\n"),
        ends(),
    ),
    runs(
        "ptpython",
        "ptpython --history-file h",
        shows(">>>", _SLEEP.strip() + "\r", "line|screen"),
        shows(r"\n.*>>>", "exit()\r", "line|screen"),
        ends(None),
    ),
    runs(
        "jupyter console",
        "{python}/jupyter-console --simple-prompt",
        asks("In [1]: ", _SLEEP),
        asks("In [2]: ", "exit\n"),
        ends(None),
    ),
    runs(
        "irb", "irb -f --prompt simple", asks(">> ", "sleep 0.4\n"), asks(">> ", "exit\n"), ends()
    ),
    runs(
        "irb --nomultiline",
        "irb -f --nomultiline --noautocomplete --prompt simple",
        asks(">> ", "sleep 0.4\n"),
        asks(">> ", "exit\n"),
        ends(),
    ),
    runs("lua", "lua5.4", *console("> ", "os.execute('sleep 0.4')\n", "os.exit()\n")),
    runs("luajit", "luajit", *console("> ", "os.execute('sleep 0.4')\n", "os.exit()\n")),
    runs("jimsh", "jimsh", *console(". ", "after 400\n", "exit\n")),
    runs("php -a", "php -a", *console("php > ", "usleep(400000);\n", "exit\n")),
    runs("jshell", "jshell -q", *console("jshell> ", "Thread.sleep(400)\n", "/exit\n")),
    runs(
        "bc",
        "bc -q",
        shows("", "1+1\n", "line"),
        shows("2\r\n", "2^200000%7\n", "line"),
        shows(r"4\r\n", "quit\n", "line"),
        ends(),
    ),
    runs("dc", "dc", shows("", "2 3 + p\n", "line"), shows("5\r\n", "q\n", "line"), ends(None)),
    runs(
        "gawk at its standard input",
        "gawk '{ print \"got\", $0 }'",
        shows("", "a\n", "line"),
        shows("got a", "\x04", "line"),
        ends(),
    ),
    runs(
        "guile",
        "guile --no-auto-compile",
        *console("scheme@(guile-user)> ", "(usleep 400000)\n", "(exit)\n"),
    ),
    runs(
        "swipl",
        "swipl -q",
        asks("?- ", "sleep(0.4).\n"),
        asks("?- ", "member(X, [a, b]).\n"),
        asks("X = a ", ";", "key|line"),
        asks("?- ", "halt.\n"),
        ends(),
    ),
    runs(
        "gforth",
        "gforth",
        shows("to exit", "400 ms\n", "line"),
        shows("ok", "bye\n", "line"),
        ends(),
    ),
    runs("ocaml", "ocaml -noinit", *console("# ", 'Sys.command "sleep 0.4";;\n', "exit 0;;\n")),
    runs("hugs", "hugs", *console("Hugs> ", "sum [1..300000]\n", ":quit\n")),
    runs(
        "sbcl",
        "sbcl --noinform",
        asks("* ", "(sleep 0.4)\n"),
        asks("* ", '(error "x")\n'),
        asks("0] ", "(exit :abort t)\n"),
        ends(None),
    ),
    runs("clisp", "clisp -q", asks("[1]> ", "(sleep 0.4)\n"), asks("[2]> ", "(exit)\n"), ends()),
    runs("ecl", "ecl -q", asks("> ", "(sleep 0.4)\n"), asks("> ", "(ext:quit)\n"), ends()),
    runs("csi", "csi -q", asks("1> ", "(sleep 1)\n"), asks("2> ", "(exit)\n"), ends(), needs="csi"),
    runs("erl", "erl", asks("1> ", "timer:sleep(400).\n"), asks("2> ", "q().\n"), ends(None)),
    runs(
        "maxima",
        "maxima -q",
        asks("(%i1) ", "factor(2^200-1);\n"),
        asks("(%i2) ", "quit();\n"),
        ends(),
    ),
    runs(
        "maxima with a question",
        "maxima -q",
        asks("(%i1) ", "integrate(x^n, x);\n"),
        shows(r"equal to - ?1\?", "no;\n", "line"),
        asks("(%i2) ", "quit();\n"),
        ends(),
    ),
    runs(
        "gnuplot",
        "gnuplot",
        asks("gnuplot> ", "pause 1\n"),
        asks("gnuplot> ", "pause -1 'Go on? '\n"),
        shows("Go on\\? ", "\n", "line|key"),
        asks("gnuplot> ", "exit\n"),
        ends(),
    ),
    runs(
        "units",
        "units",
        asks("You have: ", "1 m\n"),
        asks("You want: ", "ft\n"),
        asks("You have: ", "\x04"),
        ends(),
    ),
    runs("calc", "calc -d", asks("; ", "2^3000 % 7\n"), asks("; ", "quit\n"), ends(), needs="calc"),
    runs("qalc", "qalc", asks("> ", "2+2\n"), asks("> ", "quit\n"), ends()),
    runs("gp", "gp -q -f", asks("? ", "factor(2^160-1)\n"), asks("? ", "quit\n"), ends()),
    runs("newlisp", "newlisp", asks("> ", "(sleep 400)\n"), asks("> ", "(exit)\n"), ends()),
    runs(
        "pforth",
        "pforth",
        shows(r"\(static\)", "1 2 + .\n", "line"),
        shows("3", "bye\n", "line"),
        ends(None),
    ),
    runs(
        "bwbasic",
        "bwbasic",
        asks("bwBASIC: ", "PRINT 1\n"),
        asks("bwBASIC: ", "QUIT\n"),
        ends(None),
    ),
    runs("nickle", "nickle", asks("> ", "sleep(400)\n"), asks("> ", "quit\n"), ends()),
    runs(
        "poly",
        "poly",
        asks("> ", "OS.Process.sleep(Time.fromMilliseconds 400);\n"),
        asks("> ", "OS.Process.exit OS.Process.success;\n"),
        ends(),
    ),
    runs("tsx as a console", "{node}/tsx", asks("> ", ".exit\n"), ends()),
    runs(
        "cmd2",
        "{python}/python app",
        asks("(Cmd) ", "shell sleep 0.3\n"),
        asks("(Cmd) ", "quit\n"),
        ends(),
        files={"app": "import sys, cmd2\nsys.exit(cmd2.Cmd().cmdloop())\n"},
    ),
    runs(
        "cmd of python",
        "/usr/bin/python3 app",
        asks("(Cmd) ", "nothing\n"),
        asks("(Cmd) ", "EOF\n"),
        ends(),
        files={
            "app": (
                "import cmd\nclass A(cmd.Cmd):\n  def do_EOF(self, _): return True\nA().cmdloop()\n"
            )
        },
    ),
)
