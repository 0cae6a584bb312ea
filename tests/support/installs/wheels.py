"""A distribution of the project as others install it: its wheel, in an environment of its own."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path


def build_wheel(source: Path, directory: Path) -> Path:
    """Build the wheel from a copy, so that no build directory is left in the tree."""
    copy = directory / source.name
    shutil.copytree(
        source, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    build = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(directory)], cwd=copy, check=True, capture_output=True
    )
    (built,) = directory.glob("*.whl")
    return built


def install(wheel: Path, environment: Path, dependencies: Iterable[str]) -> Path:
    """Make ``environment`` with the wheel and its dependencies; return the directory of commands.

    ``dependencies`` names all of them, because no package index is asked.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(environment)],
        check=True,
        capture_output=True,
    )
    python = environment / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    for name in dependencies:
        _copy_distribution(name, packages)
    return environment / "bin"


def _copy_distribution(name: str, packages: Path) -> None:
    for file in distribution(name).files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(str(file.locate())), target)
