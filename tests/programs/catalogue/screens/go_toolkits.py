"""Programs of Go: its toolkits for screens and questions, and its own reader.

Their sources stand beside this file, in ``go``.
"""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, shows, works


def _go(name: str, program: str, *steps: Step) -> Program:
    return runs(name, f"{{go}}/{program}", *steps)


EVERYDAY: tuple[Program, ...] = ()
ALL = (
    _go(
        "a list of bubbletea that works on its choice",
        "tea",
        shows("two", "x", "key|screen"),
        works("Working", 0.9),
        shows("Finished", "q", "key|screen"),
        ends(None),
    ),
    _go(
        "a text input of bubbletea",
        "ti",
        shows("> ", "ada", "line|screen|key"),
        shows("ada", "\r", "line|screen|key"),
        ends(None),
    ),
    _go("a spinner of bubbletea", "spin", works("Install", 2.0), ends(None)),
    _go(
        "survey of go",
        "survey",
        shows("Name\\?", "ada\r", "line"),
        shows("Sure\\?.*N\\)", "y\r", "line|key"),
        shows("Password\\?", "x\r", "secret"),
        shows("two", "\r", "key|screen"),
        ends(None),
    ),
    _go(
        "promptui",
        "promptui",
        shows("Name", "ada\r", "line|key|screen"),
        shows("Sure", "y\r", "line|key|screen"),
        shows("Password", "x\r", "secret|screen|line"),
        shows("two", "\r", "key|screen"),
        ends(None),
    ),
    _go("tview with a form", "tview", shows("Name", "a\t\r", "screen"), ends(None)),
    _go("liner", "liner", asks("Name: ", "a\r"), asks("Password: ", "x\r", "secret"), ends(None)),
    _go("readline of go", "readl", asks("db> ", "a\r"), asks("db> ", "quit\r"), ends(None)),
    _go("bufio of go", "bufio", asks("Name: ", "a\n"), asks("Age? ", "4\n"), ends()),
    _go(
        "a channel that a reader fills",
        "worker",
        asks("Name: ", "a\n"),
        asks("Age? ", "4\n"),
        ends(),
    ),
)
