"""The budgets of the map: few boxes, few arrows between them, and no folder with many files."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The most boxes and arrows of each map. A box is a file or a package directly in the folder. An
# arrow is a pair of boxes of which one imports the other.
PLANS = {"projects": (26, 130), "controller_client": (16, 40), "console": (11, 24)}
MOST_FILES = 12
# Folders with one thing in each file may have many files.
LISTS = {"migrations", "commands", "tools"}
FOLDERS = (
    "agent",
    "backup",
    "chaos",
    "config",
    "console",
    "controller_client",
    "mcp_adapter",
    "mcp_bridge",
    "projects",
    "quickstart",
    "tests",
)


def _modules(package: str) -> dict[str, Path]:
    """Return every module of a package by its dotted name."""
    found = {}
    for path in (ROOT / package).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "build" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & modules.keys()


def _box(module: str, package: str) -> str | None:
    """The box of a module; None for the package itself."""
    rest = module.removeprefix(f"{package}.")
    return None if module == package else rest.split(".")[0]


@pytest.mark.parametrize("package", PLANS)
def test_a_package_has_few_boxes_and_few_arrows(package: str) -> None:
    modules = _modules(package)
    boxes = {box for module in modules if (box := _box(module, package))}
    arrows = {
        (here, there)
        for module, path in modules.items()
        for imported in _imported(path, modules)
        if (here := _box(module, package)) and (there := _box(imported, package)) and here != there
    }
    most_boxes, most_arrows = PLANS[package]
    assert len(boxes) <= most_boxes, sorted(boxes)
    assert len(arrows) <= most_arrows, sorted(arrows)


def _folders() -> list[Path]:
    return sorted(
        {
            path.parent
            for name in FOLDERS
            for path in (ROOT / name).rglob("*.py")
            if "build" not in path.parts
        }
    )


@pytest.mark.parametrize("folder", _folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_holds_few_files_of_its_own(folder: Path) -> None:
    files = [
        path.name for path in folder.glob("*.py") if path.name not in {"__init__.py", "conftest.py"}
    ]
    assert folder.name in LISTS or len(files) <= MOST_FILES, sorted(files)


def test_no_file_repeats_the_name_of_its_folder() -> None:
    repeated = [
        str(path.relative_to(ROOT))
        for folder in _folders()
        for path in folder.glob("*.py")
        if path.stem.removeprefix("test_").startswith(f"{folder.name}_")
    ]
    assert repeated == []
