"""What a line runs that it does not name is told, and lines inside of a line are looked into."""

import pytest

from controller_client.command_policy.directories import directories
from controller_client.command_policy.inner_lines import surveyed_within


@pytest.mark.parametrize(
    "line",
    [
        "xargs sh < list",
        "xargs -a list sh",
        "xargs -n 1 python3 < list",
        "ls | xargs -0 -n1 bash -e",
        "ls | xargs sudo sh",
        "ls | xargs nice",
        "ls | xargs -I% sh %",
        "ls | xargs -I % %",
        "ls | xargs -I{} {}",
        "ls | xargs -I{} /opt/{}/run",
        "xargs -a list -I{} sh -c {}",
        "xargs -a list -I@ sh -c 'echo @'",
        "ls | xargs -i% sh -c '%'",
        "ls | xargs -0i sh -c '{}'",
        "ls | xargs -rI % sh -c '%'",
        "ls | xargs --replace sh -c '{}'",
        "ls | xargs --replace=% sh -c '%'",
        "ls | xargs --replace=% sh %",
        "sudo xargs -a list sh",
        "find . -name q -exec {} \\;",
        "find . -name q -exec {} +",
        "find . -name q -execdir sh {} \\;",
        "find . -name q -ok sudo {} \\;",
        "find . -exec grep x {} \\; -exec sh {} +",
        "find . -exec bash -c 'cat {}' \\;",
        "parallel < list",
        "parallel :::: list",
        "parallel sh ::: a b",
        "parallel sh {} :::: list",
        "parallel sh {1} ::: a",
        "parallel sh -c 'a {2.}' ::: a ::: b",
        "parallel -I% sh % ::: a",
        "parallel -j 4 -a list",
        "run-parts /etc/cron.daily",
        "sudo run-parts --regex x .",
        "sh -c 'xargs sh < list'",
    ],
)
def test_a_line_that_runs_what_it_reads_or_finds_does_not_tell_all(line: str) -> None:
    assert not directories(line, "/").are_all


@pytest.mark.parametrize(
    "line",
    [
        "ls | xargs rm",
        "ls | xargs -P4 -n1 gzip",
        "ls | xargs less",
        "ls | xargs sudo rm",
        "xargs sh deploy.sh < list",
        "ls | xargs -I{} cp {} /b",
        "ls | xargs -I% sh deploy.sh %",
        "ls | xargs -i% sh deploy.sh %",
        "ls | xargs --replace=% cp % /b",
        "parallel sh deploy.sh {1} ::: a",
        "parallel gzip {1} ::: a",
        "find . -name q -exec rm {} +",
        "find . -exec sh deploy.sh {} \\;",
        "find . -exec sudo rm {} \\;",
        "find . -exec sh -c 'grep y x' _ {} \\;",
        "parallel gzip ::: a b",
        "parallel -j 4 ./x ::: a b",
        "busybox ls",
        "make -j4 V=1",
        "read answer",
        "printf %s a",
        "printf 'PS done\\n'; ./a.sh",
        "printf 'ENV %s\\n' PATH; ./a.sh",
        "printf -v answer PATH; ./a.sh",
        "read -p 'PS 1' answer; ./a.sh",
        "command read answer; ./a.sh",
        "command -v sh",
        "a=x; printf 'b c\\n'; sh $a",
        "git commit --message='fix a b'",
        "tar czf a.tar --exclude='a b' .",
    ],
)
def test_a_line_whose_input_is_data_tells_all(line: str) -> None:
    assert directories(line, "/").are_all


@pytest.mark.parametrize("program", ["env", "sudo", "env -i", "sudo env", "doas", "make"])
@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "PATH", "HOME", "PYTHONSTARTUP"])
def test_a_variable_that_a_program_is_given_decides_as_one_of_the_line(
    program: str, name: str
) -> None:
    for line in (f"{name}=x sh a", f"{program} {name}=x sh a", f"sh -c '{program} {name}=x sh a'"):
        assert not directories(line, "/").are_all
    assert directories(f"{program} A=x sh a", "/").are_all


@pytest.mark.parametrize(
    "line",
    [
        "systemd-run --setenv=BASH_ENV=x bash a",
        "systemd-run -EBASH_ENV=x bash a",
        "read -r BASH_ENV < list; export BASH_ENV; bash a",
        "printf -v LD_PRELOAD ./x; export LD_PRELOAD; ls",
        "mapfile PATH < list",
        "command read PATH; ./a.sh",
        "builtin read -r PATH; ./a.sh",
        "command printf -v PATH x; ./a.sh",
        "command -p read PATH; ./a.sh",
        "printf -vPATH x; ./a.sh",
        "command export PATH=x; ./a.sh",
        "command . ./a.sh",
        "builtin eval 'a b'",
        "a=x; command read a; sh $a",
        "a=x; printf -v a y; sh $a",
    ],
)
def test_a_variable_that_is_set_in_another_way_decides_too(line: str) -> None:
    assert not directories(line, "/").are_all


@pytest.mark.parametrize(
    "line",
    [
        "su --command='sh deploy.sh'",
        "su --session-command='sh deploy.sh'",
        "script --command='sh deploy.sh' log",
        "env --split-string='sh deploy.sh'",
        "env -S'sh deploy.sh'",
        "tar -cf a -I'sh deploy.sh' b",
        "ssh -o ProxyCommand='sh deploy.sh' host",
        "ssh -oProxyCommand='sh deploy.sh' host",
        "busybox sh deploy.sh",
        "toybox busybox sh deploy.sh",
        "sudo -u root su --command='sh deploy.sh'",
        "sh -c \"env -S'sh deploy.sh'\"",
        "sh -c 'busybox watch \"sh deploy.sh\"'",
        "box=busybox; $box sh deploy.sh",
    ],
)
def test_a_line_behind_an_option_or_a_program_in_one_is_looked_into(line: str) -> None:
    assert ("sh", "deploy.sh") in surveyed_within(line, "/root").commands


def test_programs_in_one_without_end_are_looked_at_in_part() -> None:
    survey = surveyed_within("busybox " * 5000, "/")
    assert not survey.is_whole
    assert sum(map(len, survey.commands)) <= 256 * 2


def test_a_program_in_one_is_counted_once_however_many_lines_follow() -> None:
    lines = "".join(f"sh -c 'echo {number}'; " for number in range(20))
    survey = surveyed_within("busybox nice -n 5 sh first.sh; " * 3 + lines, "/")
    assert survey.is_whole
    assert survey.commands.count(("nice", "-n", "5", "sh", "first.sh")) == 3
    assert ("echo", "0") in survey.commands
