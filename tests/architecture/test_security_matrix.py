"""Every row of the security matrix names tests that exist, or a reason for having none."""

import ast
import re

from tests.architecture.test_layout import ROOT

PAGE = ROOT / "docs/security/matrix.md"
ROWS = [f"X{number}" for number in range(1, 42)] + [f"P{number}" for number in range(1, 11)]
_ROW = re.compile(r"^\| ([XP]\d+) \| [^|]+ \| (.*) \|$", re.MULTILINE)
_NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _rows() -> dict[str, str]:
    return dict(_ROW.findall(PAGE.read_text()))


def test_every_row_is_there_once_and_in_order() -> None:
    assert [row for row, _ in _ROW.findall(PAGE.read_text())] == ROWS


def test_every_row_names_a_test_or_a_reason() -> None:
    assert [
        row
        for row, held in _rows().items()
        if not _NODE.search(held) and not re.search(r"\bReason\b.{20,}", held)
    ] == []


def test_every_test_that_is_named_exists() -> None:
    named = {node for held in _rows().values() for node in _NODE.findall(held)}
    missing = []
    for path, name in sorted(named):
        tests = ast.walk(ast.parse((ROOT / path).read_text())) if (ROOT / path).exists() else ()
        if name not in {
            node.name for node in tests if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }:
            missing.append(f"{path}::{name}")
    assert missing == []
