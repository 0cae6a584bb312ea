"""Docstrings are sentences: long enough to say something, and with a main clause."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_layout import ROOT, modules

FEWEST_WORDS = 5
# A docstring that begins with one of these words is half a sentence, or a question.
OPENINGS = {
    "how",
    "that",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whom",
    "whose",
    "why",
}


def _files() -> Iterator[Path]:
    """The product and what its tests stand on, relative to the root."""
    yield from modules()
    for path in sorted((ROOT / "tests/support").rglob("*.py")):
        yield path.relative_to(ROOT)


def _package(path: Path) -> str:
    """The package of a file directly under ``projects`` and its like, or the file that is there."""
    depth = 3 if path.parts[0] == "tests" else 2
    return "/".join(path.parts[:depth])


PACKAGES = sorted({_package(path) for path in _files()})


def _is_poor(docstring: str) -> bool:
    words = docstring.split()
    return len(words) < FEWEST_WORDS or words[0].strip("`*,:").lower() in OPENINGS


def _poor(path: Path) -> list[str]:
    """Every docstring of a file that says too little, with its line."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{path}:{node.body[0].lineno} {text.splitlines()[0]}"
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and _is_poor(text)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_sentences(package: str) -> None:
    assert [line for path in _files() if _package(path) == package for line in _poor(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "The text, this once.",
        "What the model is told after each of its turns.",
        "Whether the session takes input at this moment.",
        "``Where`` the log of a session is written to.",
    ],
)
def test_each_kind_of_poor_docstring_would_be_found(text: str) -> None:
    assert _is_poor(text)


@pytest.mark.parametrize(
    "text",
    [
        "Return the number of bytes that are held.",
        "Raise IllegalTransition unless the table allows the step.",
        "True if the session takes input at this moment.",
    ],
)
def test_a_sentence_is_no_finding(text: str) -> None:
    assert not _is_poor(text)
