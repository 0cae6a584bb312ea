"""Programs that can run others are known by every name of theirs."""

import pytest

from controller_client.command_policy.programs import (
    SPAWNERS,
    base_name,
    can_spawn,
    does_as_told,
    is_interpreter,
    is_shell,
)
from controller_client.command_policy.whole_names import WHOLE_INTERPRETERS, WHOLE_NAMES


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
    " makeinfo gpic mpicc escript yabasic calc ocamlruni bwbasic jar javap jdeps jlink peco"
    " elvis-tiny nex nview"
)


@pytest.mark.parametrize("program", _WITH_HOOKS.split())
def test_programs_with_hooks_wrappers_and_tunnels_are_known(program: str) -> None:
    assert can_spawn(program)


_BY_OPTION = (
    "ffmpeg iptables ip6tables-restore xtables-nft-multi ebtables lvm lvs mdadm rsyslogd named "
    "fio sysctl ogr2ogr mysqladmin dcfldd mbuffer xorriso star gtar mutool bison protoc "
    "openconnect ifup updatedb pkcs11-tool rpmspec nbdkit gocryptfs transmission-remote httrack "
    "streamlink xrdb"
)
_BY_SCREEN = "top elvis vile moar delta cu tip s3270 mcabber epic5 gdbmtool units ldapvi firefox"
_BY_ARGUMENTS = (
    "coreutils coresched pipesz enosys uname26 sudo-rs catatonit timelimit lockf dotlockfile "
    "tcpclient ccache k5start pueue srun operf spawn-fcgi pw-jack reptyr ttyrec saml2aws conmon"
)


@pytest.mark.parametrize("program", f"{_BY_OPTION} {_BY_SCREEN} {_BY_ARGUMENTS}".split())
def test_less_common_runners_are_known_by_their_whole_names(program: str) -> None:
    assert can_spawn(program)
    assert can_spawn(f"/usr/sbin/{program}")


@pytest.mark.parametrize("program", ["top-level", "x-dump", "next-step", "lake-level", "toplevel"])
def test_a_name_that_contains_a_less_common_runner_is_another_program(program: str) -> None:
    assert not can_spawn(program)


@pytest.mark.parametrize(
    "program", ["/srv/app/worker.py", "/srv/app/dump.sh", "next.py", "context.min.js"]
)
def test_a_script_is_no_less_common_runner_of_its_name(program: str) -> None:
    assert not can_spawn(program)
    assert can_spawn("vim.py")


@pytest.mark.parametrize("program", ["gprolog", "mujs", "spatialite", "scheme48", "rexx"])
def test_less_common_interpreters_run_what_they_are_given(program: str) -> None:
    assert can_spawn(program)
    assert is_interpreter(program)


@pytest.mark.parametrize(
    "program",
    [
        "python3",
        "vim.basic",
        "/usr/bin/vi",
        "view",
        "nvim",
        "nmap",
        "tshark",
        "rpm",
        "lli",
        "qemu-aarch64-static",
        "wine",
        "ld",
        "ld.so",
        "/lib64/ld-linux-x86-64.so.2",
        "ld-linux.so.2",
        "ld-2.31.so",
        "ld-musl-aarch64.so.1",
        "ld64.so.2",
    ],
)
def test_editors_loaders_and_emulators_do_what_they_are_told(program: str) -> None:
    assert does_as_told(program)
    assert can_spawn(program)


@pytest.mark.parametrize(
    "program", ["sudo", "su", "passwd", "ssh", "git", "psql", "mysql", "openssl", "gpg"]
)
def test_a_program_with_a_purpose_of_its_own_is_not_only_told(program: str) -> None:
    assert not does_as_told(program)


_RUN_NOTHING = (
    "basename base32 base64 b2sum bzip2 cat chgrp chmod chown cksum cmp comm cp csplit cut date dd "
    "df dirname du echo egrep expand expr factor false fgrep file fmt fold free getent grep groups "
    "gzip head hostid hostname iconv id join last link ln logname look ls lsblk lscpu md5sum mkdir "
    "mkfifo mknod mktemp mv netstat nl nproc numfmt od paste ping ping6 pgrep pr printenv printf "
    "ptx pwd pwdx readlink realpath rev rm rmdir seq sha1sum sha256sum sha512sum shred shuf sleep "
    "ss stat strings stty sum sync tac tail tee test touch tr traceroute true truncate tsort tty "
    "uname unexpand uniq unlink uptime users vmstat w wc who whoami xz yes zcat"
)


@pytest.mark.parametrize("program", _RUN_NOTHING.split())
def test_the_usual_programs_that_run_nothing_keep_their_names(program: str) -> None:
    assert base_name(program) == program
    assert not can_spawn(program)


def test_whole_names_are_those_that_no_other_rule_knows() -> None:
    assert WHOLE_INTERPRETERS < WHOLE_NAMES
    assert not WHOLE_NAMES & SPAWNERS
    assert not [name for name in WHOLE_NAMES if name.endswith("-")]
