"""Files keep the shape that CONTRIBUTING.md describes: names, lengths, docstrings, places."""

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "config",
    "console",
    "projects",
    "agent",
    "backup",
    "mcp_adapter",
    "mcp_bridge",
    "controller_client",
    "quickstart",
    "chaos",
)
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "signals"}
MOST_LINES = 400
MOST_SUPPRESSIONS = 60
MOST_SCRIPT_LINES = 730
MOST_SCRIPT_CHARS = 100
SUPPRESSION = re.compile(r"\b(?:noqa|nosec|type: ignore|pragma:|pyright:)")


def modules() -> Iterator[Path]:
    """Yield every module of the product but migrations, relative to the root."""
    for package in SOURCES:
        for path in sorted((ROOT / package).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if "migrations" not in relative.parts and "build" not in relative.parts:
                yield relative


def python_files() -> Iterator[Path]:
    """Yield every Python file of the product, the tests and the benchmarks."""
    yield from modules()
    for folder in ("tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT)


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "tests/unit").rglob("test_*.py")),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_unit_test_stands_where_its_module_stands(path: Path) -> None:
    place = path.relative_to(ROOT / "tests/unit").parent
    subject = path.stem.removeprefix("test_")
    mirrored = [ROOT / place / f"{subject}.py", ROOT / place / subject / "__init__.py"]
    about = ast.get_docstring(ast.parse(path.read_text())) or ""
    # A test of several modules at once, such as a simulation, stands in their package and says what
    # it is about.
    assert any(source.exists() for source in mirrored) or ((ROOT / place).is_dir() and about), (
        f"nothing at {mirrored[0].relative_to(ROOT)}"
    )


def test_no_module_is_named_for_nothing() -> None:
    assert [
        str(path)
        for path in python_files()
        if path.stem in NAMELESS or path.parent.name in NAMELESS
    ] == []


def test_scripts_of_the_pages_stay_few_and_narrow() -> None:
    lines = [
        line
        for path in (ROOT / "console/static").rglob("*.*js")
        if "vendor" not in path.parts
        for line in path.read_text().splitlines()
    ]
    code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
    assert [line for line in lines if len(line) > MOST_SCRIPT_CHARS] == []
    assert len(code) <= MOST_SCRIPT_LINES


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = {
        str(path): lines
        for path in python_files()
        if (lines := len((ROOT / path).read_text().splitlines())) > MOST_LINES
    }
    assert long == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path)
        for path in python_files()
        if path.name != "__init__.py"
        and not ast.get_docstring(ast.parse((ROOT / path).read_text()))
    ]
    assert silent == []


def test_few_warnings_of_the_checkers_are_suppressed() -> None:
    """Every suppression has a reason beside it; most reasons can be removed instead."""
    suppressed = [
        f"{path}:{token.start[0]}"
        for path in python_files()
        for token in tokenize.generate_tokens(StringIO((ROOT / path).read_text()).readline)
        if token.type == tokenize.COMMENT
        for _ in SUPPRESSION.finditer(token.string)
    ]
    assert len(suppressed) <= MOST_SUPPRESSIONS, suppressed


def test_nothing_waits_by_sleeping() -> None:
    """Tests wait for a condition. Only the helper for that, and fakes with a delay, may sleep."""
    sleepers = []
    for path in python_files():
        if path.parts[:2] == ("tests", "support") or path.parts[0] != "tests":
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            is_sleep = isinstance(node, ast.Call) and ast.unparse(node.func) in {
                "time.sleep",
                "asyncio.sleep",
                "anyio.sleep",
            }
            if is_sleep and [ast.unparse(argument) for argument in node.args] != ["0"]:
                sleepers.append(f"{path}:{node.lineno}")
    assert sleepers == []
