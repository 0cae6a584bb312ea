"""An allowlist passes plain lines of its programs, and names the wrong part of others."""

import pytest

from controller_client.command_policy.allowlist import Allowlist, entry_problem
from controller_client.command_policy.shell_grammar import CommandNotAllowed
from tests.support.corpora.bypass_attempts import attempts

LISTED = Allowlist.parse(["sleep", "echo", "cat", "python3:shell", "/opt/tool/bin/run"])


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("lines"))
def test_a_refused_attempt_names_the_refused_part(
    allowed: list[str], attempt: str, part: str
) -> None:
    with pytest.raises(CommandNotAllowed) as refused:
        Allowlist.parse(allowed).plan(attempt)
    assert refused.value.part == part
    assert str(refused.value).isascii()
    assert ascii(part)[1:-1] in str(refused.value)


def test_the_corpus_is_large_and_has_no_attempt_twice() -> None:
    lines = [parameter.values[1] for parameter in attempts("lines")]
    assert len(lines) == len(set(lines)) >= 150


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("sleep 1 && echo done", [("sleep", "1"), ("echo", "done")]),
        ("echo a; echo b\necho c", [("echo", "a"), ("echo", "b"), ("echo", "c")]),
        ("echo a | cat -n || echo 'b c'", [("echo", "a"), ("cat", "-n"), ("echo", "b c")]),
        ("echo '$(id)' \"a;b\" c\\;d 'it'\\''s'", [("echo", "$(id)", "a;b", "c;d", "it's")]),
        ("python3 -c 'print(1)'", [("python3", "-c", "print(1)")]),
        ("/opt/tool/bin/run --all", [("/opt/tool/bin/run", "--all")]),
        ("'echo' é", [("echo", "é")]),
        ("  echo\ta;\n", [("echo", "a")]),
    ],
)
def test_plain_lines_of_listed_programs_pass(line: str, commands: list[tuple[str, ...]]) -> None:
    assert list(LISTED.plan(line).commands()) == commands


def test_a_program_that_can_run_others_has_to_be_marked() -> None:
    for name in ("bash", "python3", "env", "vim", "find"):
        with pytest.raises(CommandNotAllowed) as refused:
            Allowlist.parse([name]).plan(name)
        assert f"{name}:shell" in str(refused.value)
        assert Allowlist.parse([f"{name}:shell"]).plan(name).single == (name,)


def test_no_list_allows_everything_and_an_empty_list_nothing() -> None:
    assert Allowlist.parse(None).is_open
    assert Allowlist.parse(["*"]).is_open
    nothing = Allowlist.parse([])
    assert not nothing.is_open
    with pytest.raises(CommandNotAllowed):
        nothing.plan("echo a")


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        ":shell",
        "a b",
        "a,b",
        "a:b",
        "*x/",
        "./echo",
        "bin/echo",
        "/bin/../tmp/x",
        "//x",
        "/bin/",
        "a\nb",
        "é\u200b",
    ],
)
def test_a_text_that_is_no_program_is_no_entry(entry: str) -> None:
    assert entry_problem(entry)
    with pytest.raises(ValueError, match=r"."):
        Allowlist.parse(["echo", entry])


def test_a_star_among_names_is_a_mistake_not_an_opening() -> None:
    with pytest.raises(ValueError, match="stands alone"):
        Allowlist.parse(["echo", "*"])
