"""Programs that can run others are known by every name of theirs."""

import pytest

from controller_client.command_policy.programs import SPAWNERS, base_name, can_spawn, is_shell


@pytest.mark.parametrize(
    "program",
    [
        *(
            "bash",
            "/bin/sh",
            "/usr/bin/python3.11",
            "python3",
            "python",
            "perl5.36",
            "env",
            "xargs",
            "find",
            "vim.tiny",
            "/usr/bin/vim.basic",
        ),
        *(
            "awk",
            "mawk",
            "gcc-12",
            "ssh",
            "git",
            "tar",
            "less",
            "man",
            "sudo",
            "busybox",
            "7z",
            "gpg2",
            "timeout",
            "nohup",
            "node18",
            "lua5.4",
        ),
    ],
)
def test_runners_are_known_by_all_their_names(program: str) -> None:
    assert can_spawn(program)


@pytest.mark.parametrize(
    "program",
    [
        "echo",
        "sleep",
        "cat",
        "ls",
        "cp",
        "mv",
        "ln",
        "tee",
        "dd",
        "grep",
        "head",
        "date",
        "md5sum",
        "base64",
    ],
)
def test_programs_that_run_nothing_need_no_mark(program: str) -> None:
    assert not can_spawn(program)


def test_a_version_is_no_other_program() -> None:
    assert base_name("/usr/bin/python3.11") == "python"
    assert base_name("md5sum") == "md5sum"


def test_shells_are_told_from_other_runners() -> None:
    assert all(map(is_shell, ("bash", "/usr/bin/dash", "zsh-5.9", "rbash")))
    assert not any(map(is_shell, ("python3", "env", "echo")))


def test_no_name_was_cut_at_the_end_of_a_line() -> None:
    assert not [name for name in SPAWNERS if name.endswith("-")]


@pytest.mark.parametrize(
    "program",
    [
        "x86_64-linux-gnu-gcc-12",
        "aarch64-linux-gnu-g++",
        "/lib64/ld-linux-x86-64.so.2",
        "git-shell",
        "gdb-multiarch",
        "emacs-nox",
    ],
)
def test_prefixed_and_versioned_names_of_spawning_programs_count_too(program: str) -> None:
    assert can_spawn(program)


@pytest.mark.parametrize(
    "program",
    [
        "octave-cli",
        "fakeroot-sysv",
        "byobu-screen",
        "inetutils-telnet",
        "c99-gcc",
        "aptitude-curses",
        "my-python3.11",
    ],
)
def test_a_name_that_contains_a_runner_counts_as_a_runner(program: str) -> None:
    assert can_spawn(program)
    assert can_spawn(f"/usr/bin/{program}")


_WITH_HOOKS = (
    "savelog update-ca-certificates gpg-agent rotatelogs fcgistarter orterun mpirun run_erl "
    "svnmucc svnsync chg ledger pygmentize"
    " llvm-reduce newlisp virtualenv bvi jmacs jpico jstar picocom sc gold restore tput tset "
    "reset ctags mysqldump phar ocamlc"
    " makeinfo gpic mpicc"
)


@pytest.mark.parametrize("program", _WITH_HOOKS.split())
def test_programs_with_hooks_wrappers_and_tunnels_are_known(program: str) -> None:
    assert can_spawn(program)
