"""The container images without a container engine.

The files that the Dockerfile copies into each target are read from it, and the commands that start
them from the compose file.
"""

import fnmatch
import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PROJECT_ROOT = Path(__file__).resolve().parents[3]
_STEP = re.compile(r"^([A-Z]+)\s+(.*)$")
_VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*|:-([^}]*))?\}")


@dataclass
class Image:
    """One target of the Dockerfile.

    ``copied``: (source in the context, destination below the working directory).
    """

    base: str
    copied: list[tuple[str, str]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)


def images() -> dict[str, Image]:
    """Every named target, with everything it inherits from the targets below it."""
    found: dict[str, Image] = {}
    image = Image("")
    for step, rest in _steps((PROJECT_ROOT / "Dockerfile").read_text()):
        if step == "FROM":
            base, _, name = rest.partition(" AS ")
            before = found.get(base, Image(base))
            image = Image(
                before.base,
                [*before.copied],
                {**before.environment},
                before.command,
                before.entrypoint,
                before.health,
            )
            found[name] = image
        elif step == "COPY" and not rest.startswith("--from"):
            *sources, destination = rest.split()
            assert not destination.startswith("/"), (
                "what is copied elsewhere is not looked at by these tests"
            )
            image.copied += [(source, destination) for source in sources]
        elif step == "ENV":
            image.environment |= dict(pair.split("=", 1) for pair in rest.split())
        elif step == "CMD":
            image.command = json.loads(rest)
        elif step == "ENTRYPOINT":
            image.entrypoint = json.loads(rest)
        elif step == "HEALTHCHECK":
            image.health = json.loads(rest.partition("CMD ")[2])
    return found


def _steps(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(match[1], match[2].strip()) for match in map(_STEP.match, whole.splitlines()) if match]


def assemble(image: Image, directory: Path) -> None:
    """Make ``directory`` the working directory of ``image``, with the files that it copies."""
    ignored = [
        line.strip()
        for line in (PROJECT_ROOT / ".dockerignore").read_text().splitlines()
        if line.strip()
    ]
    directory.mkdir()
    for source, destination in image.copied:
        assert not any(fnmatch.fnmatch(source, pattern) for pattern in ignored), (
            f"{source} is not in the context"
        )
        target = directory / destination
        if (PROJECT_ROOT / source).is_dir():
            shutil.copytree(
                PROJECT_ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__", "build")
            )
        else:
            shutil.copy(PROJECT_ROOT / source, target / source if target.is_dir() else target)


def services() -> dict[str, dict[str, Any]]:
    """The services of the compose file, as they are written there."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        (PROJECT_ROOT / "docker-compose.yml").read_text()
    )["services"]
    return found


def filled(text: str, variables: dict[str, str]) -> str:
    """A text of the compose file with its variables replaced.

    Raises KeyError for a variable that has neither a value nor a default.
    """
    return _VARIABLE.sub(
        lambda match: (
            variables.get(match[1], match[2] or "") if match[2] is not None else variables[match[1]]
        ),
        text,
    )
