"""A shell reads the terminal unless its arguments name a script or a command."""

import pytest

from controller_client.terminal_state.prompt.shell_arguments import (
    is_shell_of_terminal,
    may_be_shell,
    runs_script,
)


@pytest.mark.parametrize(
    "words",
    [
        "bash", "bash -i", "bash -l", "bash --rcfile F -i", "bash --init-file F", "bash -o vi",
        "bash +o vi", "bash -O extglob", "bash +O extglob", "bash --norc -eo pipefail",
        "bash -oO vi extglob", "bash -s", "bash -s a b", "bash -is a", "bash --", "bash -",
        "zsh -o vi", "zsh -fo vi", "zsh --emulate sh", "zsh -f", "dash -o vi -i", "dash -V",
        "ash -o vi", "ksh93 -o emacs", "mksh -T tty1", "tcsh -f", "tcsh -l",
        "fish -C id", "fish -Cid", "fish -iC id", "fish --init-command id",
        "fish --init-command=id", "fish -d 3", "nu -n", "elvish",
    ],
)  # fmt: skip
def test_a_shell_with_options_alone_reads_the_terminal(words: str) -> None:
    shell, *arguments = words.split()
    assert not runs_script(shell, arguments)


@pytest.mark.parametrize(
    "words",
    [
        "bash -c id", "bash -ic id", "bash -lc id", "bash --norc -xc id", "bash script",
        "bash -i script", "bash -o vi script", "bash --rcfile F script a", "bash -- script",
        "bash - script", "bash -eo pipefail script", "zsh -fc id", "zsh -o vi script",
        "dash -ec id", "mksh script", "tcsh -f script", "tcsh -c id", "fish -c id",
        "fish --command=id",
        "fish -C id script", "fish -Cid -c id", "nu script", "xonsh -c id",
    ],
)  # fmt: skip
def test_a_script_and_a_command_are_told_from_the_arguments_of_options(words: str) -> None:
    shell, *arguments = words.split()
    assert runs_script(shell, arguments)


@pytest.mark.parametrize(
    ("comm", "words", "is_shell"),
    [
        ("bash", "-bash", True),
        ("bash", "bash --rcfile F -i", True),
        ("bash", "bash script", False),
        ("busybox", "busybox sh", True),
        ("busybox", "/bin/busybox ash -o vi", True),
        ("busybox", "-sh", True),
        ("toybox", "/bin/sh", True),
        ("busybox", "busybox sh script", False),
        ("busybox", "busybox vi", False),
        ("busybox", "busybox", False),
        ("cat", "cat", False),
        ("xonsh", "python3 /usr/bin/xonsh -i", True),
        ("xonsh", "python3 /usr/bin/xonsh script", False),
        ("xonsh --no-rc -", "xonsh", True),
        ("posh", "posh -o vi", True),
        ("bsd-csh", "bsd-csh -f", True),
    ],
)
def test_a_file_of_many_programs_is_named_by_its_arguments(
    comm: str, words: str, is_shell: bool
) -> None:
    assert (may_be_shell(comm) and is_shell_of_terminal(comm, words.split())) is is_shell
