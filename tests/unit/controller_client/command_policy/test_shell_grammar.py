"""An accepted line runs exactly the words of its plan, as a real bash shows."""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from controller_client.command_policy import shell_grammar
from controller_client.command_policy.shell_grammar import (
    MAX_COMMANDS,
    CommandPlan,
    NotPlain,
    Operator,
    Pipeline,
    Words,
    parse_plan,
    quoted,
)

PROGRAMS = ("alpha", "beta", "gamma")
# One write for each call: its words, each ended by NUL, and a mark.
_RECORDER = '#!/bin/sh\nprintf \'%s\\0\' "${0##*/}" "$@" MARK >> "$0.calls"\n'
_MARK = "MARK"


class Recorders:
    """Programs in a directory of their own, which write down how they are called."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="holdline-recorders-"))
        for name in PROGRAMS:
            program = self.directory / name
            program.write_text(_RECORDER)
            program.chmod(0o755)

    def run(self, script: str) -> Counter[Words]:
        """Run a script in a bash that finds only the recorders; return the calls."""
        for name in PROGRAMS:
            (self.directory / f"{name}.calls").unlink(missing_ok=True)
        environment = {"PATH": str(self.directory), "LANG": "C.UTF-8"}
        subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", script],
            env=environment,
            cwd=self.directory,
            check=False,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
        )
        return Counter(self._calls())

    def path_of(self, words: Words) -> str:
        """A command with its program's path, as a host runs it."""
        return quoted((str(self.directory / words[0]), *words[1:]))

    def _calls(self) -> Iterator[Words]:
        for name in PROGRAMS:
            path = self.directory / f"{name}.calls"
            recorded = path.read_bytes().decode() if path.exists() else ""
            call: list[str] = []
            for word in recorded.split("\0")[:-1]:
                if word == _MARK:
                    yield tuple(call)
                    call = []
                else:
                    call.append(word)

    @property
    def strangers(self) -> list[str]:
        """Files that nobody but an unlisted program can have made."""
        known = {*PROGRAMS, *(f"{name}.calls" for name in PROGRAMS)}
        return [entry.name for entry in self.directory.iterdir() if entry.name not in known]


@pytest.fixture(scope="module")
def recorders() -> Iterator[Recorders]:
    made = Recorders()
    yield made
    shutil.rmtree(made.directory)


def _expected(plan: CommandPlan) -> Counter[Words]:
    """Return the commands that run when every program succeeds: none that follows ``||``."""
    calls: Counter[Words] = Counter()
    succeeded = True
    for pipeline in plan.pipelines:
        if pipeline.operator == "||" and succeeded:
            continue
        calls.update(pipeline.commands)
        succeeded = True
    return calls


_TEXT = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=8
).filter(lambda text: text != _MARK)
_SHELLISH = st.text("ab01 '\"\\$`;&|<>(){}[]*?~!#=^%\n\t-,.:/@+", max_size=24)
_WORD = st.one_of(
    _TEXT,
    st.sampled_from(
        [
            "",
            "$(id)",
            "`id`",
            "a;id",
            "a\nid",
            "'",
            '"',
            "\\",
            "!",
            "{",
            "}",
            "then",
            "~",
            "*",
            "-c",
            "#",
            "a=b",
            "\\n",
        ]
    ),
)
_COMMAND = st.tuples(st.sampled_from(PROGRAMS), st.lists(_WORD, max_size=4)).map(
    lambda parts: (parts[0], *parts[1])
)
_PIPELINE = st.lists(_COMMAND, min_size=1, max_size=3).map(tuple)
_OPERATORS: tuple[Operator, ...] = ("&&", "||", ";")
_PLANS = st.tuples(
    _PIPELINE, st.lists(st.tuples(st.sampled_from(_OPERATORS), _PIPELINE), max_size=3)
).map(
    lambda parts: CommandPlan(
        (Pipeline("", parts[0]), *(Pipeline(operator, commands) for operator, commands in parts[1]))
    )
)
# Pieces of lines that two parsers could understand differently.
_PIECES = st.sampled_from(
    [
        *PROGRAMS,
        *"ab;&|\n'\"\\$`(){}<>!#~*?=[] ",
        "&&",
        "||",
        "$(alpha)",
        "`beta`",
        "\\\n",
        "$'",
        "id",
        "<<E\n",
        "2>",
        " && gamma ",
        "'a b'",
        '"c d"',
    ]
)
_LINES = st.one_of(
    _SHELLISH.map(lambda text: "alpha " + text),
    st.lists(_PIECES, max_size=10).map("".join),
    st.lists(_PIECES, max_size=8).map(" ".join),
)
_QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_QUICK
@given(plan=_PLANS)
def test_a_plan_runs_exactly_its_words(recorders: Recorders, plan: CommandPlan) -> None:
    assert recorders.run(plan.script(recorders.path_of)) == _expected(plan)
    assert recorders.strangers == []


def _is_plain(text: str) -> bool:
    try:
        parse_plan(quoted(("alpha", text)))
    except NotPlain:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(plan=_PLANS)
def test_a_plan_written_as_a_script_is_the_plan_again(plan: CommandPlan) -> None:
    if all(_is_plain(word) for words in plan.commands() for word in words):
        assert parse_plan(plan.script()) == plan


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(line=_LINES)
@example(line="alpha a\\ b 'c'\"d\" && beta | gamma || alpha")
@example(line='alpha \\\\* \\$x "\\$x\\`\\"\\\\\\a"')
@example(line="alpha b\\ 'c'\\  d\\ ")
@example(line="\\ alpha")
@example(line="alpha a#b a=b %1 ^a -- 10#3\n\nbeta;")
def test_bash_runs_the_same_words_as_the_plan(recorders: Recorders, line: str) -> None:
    try:
        plan = parse_plan(line)
    except NotPlain:
        return
    if any(words[0] not in PROGRAMS for words in plan.commands()):
        return
    # The text is harmless now, because it names recorders only. In bash it does what the plan does.
    assert recorders.run(line) == recorders.run(plan.script(recorders.path_of)) == _expected(plan)
    assert recorders.strangers == []


@settings(max_examples=300, deadline=None)
@given(line=st.one_of(_LINES, st.text(max_size=40)))
def test_any_text_is_a_plan_or_names_the_wrong_part(line: str) -> None:
    try:
        names = [words[0] for words in parse_plan(line).commands()]
    except NotPlain as refused:
        names = [refused.part]
    assert names
    assert all(names)


def test_a_line_of_any_length_is_judged() -> None:
    many = " && ".join(["alpha"] * MAX_COMMANDS)
    assert len(list(parse_plan(many).commands())) == MAX_COMMANDS
    for more in (
        many + " && alpha" * 2,
        ";".join(["alpha"] * 9000),
        "alpha " + "$(" * 5000,
        "(" * 5000,
        "alpha " + "'a'" * 5000 + "`",
    ):
        with pytest.raises(NotPlain):
            parse_plan(more)


def test_a_name_that_a_shell_would_interpret_is_quoted() -> None:
    assert quoted(("time", "then", "a b")) == "'time' 'then' 'a b'"


def test_a_grammar_for_which_there_is_no_memory_is_no_broken_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "failed to map segment from shared object"
    (tmp_path / "tree_sitter_bash.py").write_text(f"raise ImportError({reason!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tree_sitter_bash", raising=False)
    shell_grammar.parser.cache_clear()
    with pytest.raises(MemoryError):
        parse_plan("ls")
    monkeypatch.undo()
    assert parse_plan("ls")
