"""Names of tests are short, and a class has a name of its own in its app."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.architecture.test_layout import ROOT

LONGEST_TEST_NAME = 70
APPS = (
    "agent",
    "backup",
    "config",
    "console",
    "controller_client",
    "mcp_adapter",
    "mcp_bridge",
    "projects",
    "quickstart",
)
# Django looks for classes of these names in each of its commands and kinds of database.
NAMES_OF_DJANGO = {"Command", "DatabaseWrapper"}
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def _tests_of(path: Path) -> list[str]:
    """Return the names of all test functions in a file, with those of test classes."""
    nodes = ast.walk(ast.parse(path.read_text()))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if function.name.startswith("test_")]


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_test_has_a_short_name_of_its_own(path: Path) -> None:
    names = _tests_of(path)
    assert [name for name in names if len(name) > LONGEST_TEST_NAME] == []
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("app", APPS)
def test_a_class_has_a_name_of_its_own_in_its_app(app: str) -> None:
    places = defaultdict(list)
    for path in sorted((ROOT / app).rglob("*.py")):
        relative = path.relative_to(ROOT)
        if not {"build", "migrations"} & set(relative.parts):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and node.name not in NAMES_OF_DJANGO:
                    places[node.name].append(str(relative))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
