"""The directories that a line may go to are told, or it is told that they cannot be."""

import pytest

from controller_client.command_policy.directories import MAX_DIRECTORIES, directories, start_of
from controller_client.command_policy.inner_lines import MAX_LINES, MAX_WORDS


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("sh deploy.sh", ["/a"]),
        ("cd b; sh deploy.sh", ["/a", "/a/b"]),
        ("cd /b && ./x", ["/a", "/b"]),
        ("cd b; cd c", ["/a", "/a/b", "/a/c", "/a/b/c"]),
        ("cd b; popd; cd -", ["/a", "/a/b"]),
        ("make -C b all", ["/a", "/a/b"]),
        ("make -Cb", ["/a", "/a/b"]),
        ("tar --directory=b -xf x.tar", ["/a", "/a/b"]),
        ("cd ~; sh x", ["/a"]),
        ("place=b; cd $place && sh x", ["/a", "/a/b"]),
        ("cd {b,c}; sh x", ["/a", "/a/b", "/a/c", "/a/b/c"]),
        ("make -j$(nproc) all", ["/a"]),
        ("find . -exec sh x {} +", ["/a"]),
        ('git commit -m "$text"', ["/a"]),
        ('sh x "$1" $(date)', ["/a"]),
    ],
)
def test_a_line_tells_where_it_goes(line: str, paths: list[str]) -> None:
    assert directories(line, "/a") == (tuple(paths), True)


@pytest.mark.parametrize(
    "line",
    [
        'cd "$place"; sh x',
        "cd; sh x",
        "cd ~other; sh x",
        "cd $(mktemp -d) && ./x",
        "eval 'cd /b'; sh x",
        ". ./environment; sh x",
        "alias x=y; x",
        "PATH=/b:$PATH; x",
        "export PATH=/b; x",
        "PATH=/b x",
        "CDPATH=/b; cd c; sh x",
        "for i in 1 2; do cd b; done; sh x",
        "go() { cd b; }; go; go; sh x",
        '"$program" x',
        "; ".join(f"cd {number}" for number in range(9)),
        "cd 'b",
        "sh -c 'cd $place; sh x'",
        "sh <<END\n. ./environment\nEND\n",
        "env PATH=/b sh -c 'PATH=/b x y'",
        "sh x" + " y" * MAX_WORDS,
        "true; " * MAX_WORDS + "sh x",
        "sh $1",
        "sh -e -- $script",
        "bash -o pipefail $script",
        "sudo -u root $program",
        "timeout 5 $program",
        "exec $program",
        "script=x; script+=y; sh $script",
        "script=x; read script; sh $script",
        "for script; do sh $script; done",
        "script=x; sh ${script:-y}",
        "sh `cat name`",
        "sh */x",
        "sh {1..9}x",
        "sh " + "{a,b}" * 9,
        "sh {" + ",".join(map(str, range(33))) + "}",
        "for script in " + " ".join(map(str, range(33))) + "; do sh $script; done",
        "a={1,2,3,4}{1,2,3}; sh $a $a",
        "script=x; sh $scripts",
        "a=xx; " + "; ".join(f"a=$a$a$a{number}" for number in range(99)) + "; sh $a",
        "a0=xx; " + "; ".join(f"a{n + 1}=$a{n}$a{n}" for n in range(64)) + "; sh $a64",
        "sh {" + "," * 60_000,
        "sh" + "".join(f" {number}*" for number in range(33)),
        "BASH_ENV=x bash -c true",
        "python3 -m deploy",
        "sudo python3.11 -um deploy now",
        "python3 -mdeploy",
        "perl -Ilib -MDeploy -e run",
        "perl -wMDeploy -e run",
        "ruby -rdeploy -e run",
        "ruby -I lib run.rb",
        "node -r deploy run.js",
        "node --import=deploy run.js",
        "sudo lua -l deploy run.lua",
        "GIT_SSH=./x git pull",
        "LD_PRELOAD=./x.so ls",
        "eval " + " ".join("'true " + "x'" for _ in range(MAX_LINES + 1)),
    ],
)
def test_a_line_that_cannot_be_followed_says_so(line: str) -> None:
    found = directories(line, "/a")
    assert not found.are_all
    assert len(found.paths) <= MAX_DIRECTORIES


@pytest.mark.parametrize("name", ["PATH", "HOME", "BASH_ENV", "LD_PRELOAD"])
@pytest.mark.parametrize(
    "line",
    [
        "read A",
        "read -aA",
        "read -ra A",
        "read -raA",
        "read 'A[0]'",
        'read "A[$i]"',
        "read 'A?now: '",
        "time read A",
        "command read -r A",
        "sh -c 'read -aA; x'",
        "mapfile A",
        "mapfile -tn1 A",
        "readarray -t 'A'",
        "printf -vA %s /b",
        "printf -v 'A[0]' %s /b",
        'printf -v "A[$i]" %s /b',
        "getopts ab A",
        "wait -p A",
        "wait -npA",
        "coproc A { cat; }",
        "exec {A}< f",
        "let A=1",
        "let 'i=2, A[0] += 1'",
    ],
)
def test_a_command_that_sets_what_decides_says_so(line: str, name: str) -> None:
    assert not directories(f"{line.replace('A', name)}; x", "/a").are_all
    assert directories(f"{line.replace('A', 'answer')}; x", "/a").are_all


@pytest.mark.parametrize(
    "line",
    [
        'read "$name"',
        "read -a$name",
        "read -s $name",
        'mapfile -t "$name"',
        "mapfile -C ./x lines",
        "printf -v$name %s /b",
        'printf -v "$name" %s /b',
        "printf $format /b",
        'getopts ab "$name"',
        'let "$name = 1"',
    ],
)
def test_a_command_that_may_set_any_variable_says_so(line: str) -> None:
    assert not directories(f"{line}; x", "/a").are_all


@pytest.mark.parametrize(
    "line",
    [
        'read -rp "$question" answer',
        'read -rp"$question" answer',
        'getopts "$letters" answer',
        'mapfile -t -O "$first" lines < "$file"',
        "printf '%s' \"$answer\"",
        'wait -n "$job"',
        'let "i = $j + 1"',
        "time sleep 1",
    ],
)
def test_what_a_command_is_given_beside_a_name_is_no_name(line: str) -> None:
    assert directories(f"{line}; x", "/a").are_all


@pytest.mark.parametrize("name", ["PATH", "HOME", "BASH_ENV", "LD_PRELOAD"])
@pytest.mark.parametrize(
    "line",
    [
        "declare 'A=/b'",
        'export "A=$place"',
        "typeset 'A[0]=/b'",
        "A[0]=/b",
        "declare A[0]=/b",
        "f() { local A; x; }; f",
        "unset A",
        "unset -v 'A[0]'",
        "declare -n reference=A; reference=/b",
        "(( A = 1 ))",
        "(( i = 2, A++ ))",
        "echo $((A[0] += 1))",
        ": ${A:=/b}",
        ': "${A=/b}"',
        "for A in /b; do x; done",
        "select A in /b; do x; done",
    ],
)
def test_a_declaration_that_sets_what_decides_says_so(line: str, name: str) -> None:
    assert not directories(f"{line.replace('A', name)}; x", "/a").are_all
    assert directories(f"{line.replace('A', 'answer')}; x", "/a").are_all


@pytest.mark.parametrize(
    "line",
    [
        'export "$variable"',
        "export $(cat variables)",
        'unset "$name"',
        "declare -n reference=$name",
        "declare -nx 'reference=PATH'",
        "script=x; declare 'script=y'; sh $script",
        "script=x; script[0]=$y; sh $script",
        ": ${script:=x}; sh $script",
        "script=x; (( script = 1 )); sh $script",
    ],
)
def test_a_declaration_that_may_set_any_variable_says_so(line: str) -> None:
    assert not directories(f"{line}; x", "/a").are_all


@pytest.mark.parametrize(
    "line",
    [
        "export PATH",
        "readonly PATH",
        "declare -p",
        "export A=b 'C=d'",
        "[[ PATH = x ]]",
        "(( PATH == 1 ))",
        "echo ${PATH:-/b}",
        "script=x; unset other; local place; sh $script",
    ],
)
def test_what_only_looks_at_a_variable_sets_none(line: str) -> None:
    assert directories(f"{line}; x", "/a").are_all


@pytest.mark.parametrize(
    "line",
    [
        "export $(" * 2000 + ")" * 2000,
        "((" + "a[" * 2000 + "1" + "]" * 2000 + " = 1))",
        "declare " + "'A]" * 20_001 + "'",
    ],
)
def test_a_declaration_of_any_depth_is_looked_at(line: str) -> None:
    assert directories(line, "/a").paths == ("/a",)


@pytest.mark.parametrize("line", ["read -" + "a" * 200_000, "let " + "PATH" * 50_000])
def test_a_word_of_any_length_is_looked_at_in_a_moment(line: str) -> None:
    assert directories(line, "/a").paths == ("/a",)


@pytest.mark.parametrize(
    ("cwd", "env", "place"),
    [
        (None, None, None),
        ("b", {"A": "x"}, "b"),
        (None, {"HOME": "/c"}, "/c/"),
        ("b", {"HOME": "/c"}, "/c/b"),
        ("/b", {"HOME": "/c"}, "/b"),
    ],
)
def test_a_home_that_the_caller_gives_is_where_a_line_starts(
    cwd: str | None, env: dict[str, str] | None, place: str | None
) -> None:
    assert start_of(cwd, env) == place
