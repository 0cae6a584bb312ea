"""Shells and their options, line editors and prompts."""

from dataclasses import replace

from tests.programs.catalogue.program import asks, ends, runs, shows
from tests.support.hosts.truth import Ends, Waits, Works


def session(prompt: str, *, leave: str = "exit\n") -> tuple[Waits | Works | Ends, ...]:
    """Return the steps of a shell: it works, runs a program that reads, and is left."""
    return (
        asks(prompt, "sleep 0.4\n", "shell"),
        asks(prompt, "cat\n", "shell"),
        shows("cat.*\n", "hello\n", "line"),
        shows(r"hello\r+\nhello\r+\n", "\x04", "line"),
        asks(prompt, leave, "shell"),
        ends(None),
    )


_XONSH = (
    asks("xo> ", "sleep 0.4\n", "shell"),
    # Not cat: xonsh may give it the terminal after its first read, which then fails (EIO).
    asks("xo> ", "input('name? ')\n", "shell"),
    asks("name? ", "Ada\n", "line"),
    asks("xo> ", "exit\n", "shell"),
    ends(None),
)
_RC = {"rc": "PS1='there$ '\n"}
EVERYDAY = (
    runs("bash -i", "bash --norc -i", *session("sh$ "), env={"PS1": "sh$ "}),
    runs(
        "bash with a file of its own",
        "bash --rcfile rc -i",
        *session("there$ "),
        files=_RC,
    ),
    runs("bash -o vi", "bash --rcfile rc -o vi", *session("there$ "), files=_RC),
    runs(
        "bash without a line editor",
        "bash --norc --noediting",
        *session("$ "),
        env={"PS1": "$ "},
    ),
    runs("bash -r", "bash --norc -r", *session("$ "), env={"PS1": "$ "}),
    runs(
        "bash with a prompt of two lines",
        "bash --rcfile rc",
        *session("> "),
        files={"rc": r"PS1='\n\[\e[32m\]\u@host\[\e[0m\] ~/work\n> '" + "\n"},
    ),
    runs("dash -i", "dash -i", *session("$ "), env={"PS1": "$ "}),
    runs("sh -i", "sh -i", *session("sh> "), env={"PS1": "sh> "}),
    runs(
        "bash at a continuation",
        "bash --norc",
        asks("$ ", "for i in 1 2\n", "shell"),
        asks("> ", "do echo n$i; sleep 0.2\n", "shell|line"),
        asks("> ", "done\n", "shell|line"),
        asks("$ ", "cat <<X\n", "shell"),
        asks("> ", "text\nX\n", "shell|line"),
        asks("$ ", "exit 3\n", "shell"),
        ends(3),
        env={"PS1": "$ "},
    ),
    runs(
        "bash that searches its history",
        "bash --norc",
        asks("$ ", "echo one\n", "shell"),
        asks("$ ", "\x12ec", "shell"),
        shows(r"reverse-i-search\).*ec", "\x07", "shell|line|key"),
        shows(r"\$ ", "exit\n", "shell"),
        ends(),
        env={"PS1": "$ "},
    ),
)
ALL = (
    runs("zsh -f", "zsh -f", *session("% "), whom="user"),
    runs("zsh -o vi", "zsh -f -o vi", *session("zz> "), env={"PS1": "zz> "}),
    runs(
        "zsh with a prompt at the right",
        "zsh -f",
        shows("zr> .*right", "sleep 0.4\n", "shell"),
        replace(shows(r"\n.*zr> .*right", "exit\n", "shell"), prompt="zr> "),
        ends(),
        env={"RPROMPT": "right", "PS1": "zr> "},
    ),
    runs("zsh without its line editor", "zsh -f +Z", *session("zz> "), env={"PS1": "zz> "}),
    runs("ksh93", "ksh93", *session("k$ "), env={"PS1": "k$ ", "ENV": "/dev/null"}),
    runs(
        "ksh93 -o emacs", "ksh93 -o emacs", *session("k$ "), env={"PS1": "k$ ", "ENV": "/dev/null"}
    ),
    runs("mksh", "mksh", *session("m$ "), env={"PS1": "m$ ", "ENV": "/dev/null"}, whom="user"),
    runs("fish", "fish -N -C 'function fish_prompt; echo \"fish> \"; end'", *session("fish> ")),
    runs("tcsh -f", "tcsh -f", *session("> "), whom="user"),
    runs("csh -f", "bsd-csh -f", *session("% "), whom="user"),
    runs("yash", "yash --norcfile", *session("$ "), whom="user"),
    runs("busybox sh", "busybox sh", *session("b$ "), env={"PS1": "b$ "}),
    runs("busybox ash", "busybox ash -i", *session("b$ "), env={"PS1": "b$ "}),
    runs("rc", "rc -i", *session("; ")),
    runs(
        "sash",
        "sash",
        asks("> ", "cat\n", "shell|line"),
        shows("cat\r\n", "\x04", "line"),
        asks("> ", "exit\n", "shell|line"),
        ends(None),
    ),
    runs("posh", "posh -i", *session("p$ "), env={"PS1": "p$ "}, whom="user"),
    runs(
        "elvish",
        "elvish -norc",
        shows("[>#] ", "sleep 0.4\r", "shell"),
        shows(r"\n.*[>#] ", "exit\r", "shell"),
        ends(),
    ),
    runs("xonsh", "{python}/xonsh --no-rc --shell-type readline -D PROMPT='xo> '", *_XONSH),
    runs(
        "xonsh with prompt_toolkit",
        "{python}/xonsh --no-rc --shell-type prompt_toolkit -D PROMPT='xo> '",
        *_XONSH,
    ),
    runs("rlwrap dash", "rlwrap dash -i", *session("r$ "), env={"PS1": "r$ "}),
    runs(
        "bash as the far end of a pipe",
        "bash -c 'bash --rcfile rc -i 2>&1 | tee copy'",
        asks("there$ ", "sleep 0.4\n", "shell|line"),
        asks("there$ ", "exit\n", "shell|line"),
        ends(),
        files=_RC,
    ),
    runs(
        "a debugging shell",
        "bash --norc -x -i",
        asks("$ ", "sleep 0.3\n", "shell"),
        asks("$ ", "exit\n", "shell"),
        ends(),
        env={"PS1": "$ "},
    ),
    runs(
        "fish asked to confirm nothing",
        "fish -N -P -C 'function fish_prompt; echo \"fish> \"; end'",
        asks("fish> ", "read -P 'Name? ' x; and sleep 0.3\n", "shell"),
        asks("Name? ", "ada\n", "line|shell"),
        asks("fish> ", "exit\n", "shell"),
        ends(),
    ),
    runs(
        "zsh at its own read",
        "zsh -f",
        asks("zz> ", "read -r 'x?Name? '; sleep 0.3\n", "shell"),
        asks("Name? ", "ada\n"),
        asks("zz> ", "exit\n", "shell"),
        ends(),
        env={"PS1": "zz> "},
    ),
    runs(
        "zsh at its own select",
        "zsh -f",
        asks("zz> ", "select x in a b; do break; done\n", "shell"),
        asks("?# ", "1\n"),
        asks("zz> ", "exit\n", "shell"),
        ends(),
        env={"PS1": "zz> "},
    ),
    runs(
        "ksh93 at its own read",
        "ksh93",
        asks("k$ ", "read x?'Name? '; sleep 0.3\n", "shell"),
        asks("Name? ", "ada\n", "line"),
        asks("k$ ", "exit\n", "shell"),
        ends(),
        env={"PS1": "k$ ", "ENV": "/dev/null"},
    ),
)
