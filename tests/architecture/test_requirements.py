"""The manifest of requirements and the marks of the tests agree."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).resolve().parents[1]


def _marks_of(path: Path) -> Iterator[tuple[str | None, int]]:
    """Every argument of ``mark.requirement(...)`` in a file, with its line.

    An argument that is not a literal is None.
    """
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "requirement"
        ):
            for argument in node.args:
                yield (
                    (
                        argument.value
                        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                        else None
                    ),
                    node.lineno,
                )


@pytest.fixture(scope="module")
def marks() -> dict[str | None, list[str]]:
    """The places where each requirement is marked."""
    found: dict[str | None, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for requirement, line in _marks_of(path):
            found[requirement].append(f"{path.relative_to(TESTS)}:{line}")
    return found


def test_every_requirement_that_is_not_deferred_is_held_by_a_test(
    marks: dict[str | None, list[str]],
) -> None:
    uncovered = {
        name: wanted.behaviour
        for name, wanted in REQUIREMENTS.items()
        if wanted.deferred is None and name not in marks
    }
    assert not uncovered


def test_no_mark_names_an_unknown_requirement(marks: dict[str | None, list[str]]) -> None:
    assert not {
        name: places for name, places in marks.items() if name is None or name not in REQUIREMENTS
    }


def test_no_mark_names_a_deferred_requirement(marks: dict[str | None, list[str]]) -> None:
    assert not {
        name: places
        for name, places in marks.items()
        if name in REQUIREMENTS and REQUIREMENTS[name].deferred is not None
    }


def test_every_deferral_gives_a_reason() -> None:
    assert not [
        name
        for name, wanted in REQUIREMENTS.items()
        if wanted.deferred is not None and len(wanted.deferred.split()) < 3
    ]
