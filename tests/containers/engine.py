"""The container engine of this machine, and what it lacks to run the compose file."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from tests.support.installs.images import PROJECT_ROOT, services

_BASE: Final = re.compile(r"^FROM (\S+:\S+) AS ", re.MULTILINE)
_ANSWER_SECONDS: Final = 60


def compose() -> list[str] | None:
    """Return the command that reads a compose file, or None if this machine has none."""
    if _refusal("docker", "compose", "version") is None:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


def images_of_others() -> list[str]:
    """Return the images that the Dockerfile and the compose file are built on."""
    bases = _BASE.findall((PROJECT_ROOT / "Dockerfile").read_text())
    served = [entry["image"] for entry in services().values() if "build" not in entry]
    return sorted({*bases, *served})


def is_here(image: str) -> bool:
    """Return whether the engine has the image already."""
    return _refusal("docker", "image", "inspect", image) is None


def reasons_to_leave_out(stand_ins: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield why the compose file cannot run here; nothing if it can.

    An image that is neither here nor among ``stand_ins`` is pulled.
    """
    if shutil.which("docker") is None:
        yield "no container engine: docker is not installed"
        return
    if (refusal := _refusal("docker", "info")) is not None:
        yield f"no container engine answers: {refusal}"
        return
    if compose() is None:
        yield "neither docker compose nor docker-compose is installed"
    for image in images_of_others():
        if image in stand_ins or is_here(image):
            continue
        if (refusal := _refusal("docker", "pull", "--quiet", image, seconds=None)) is not None:
            yield f"{image} cannot be pulled: {refusal}"


def _refusal(*command: str, seconds: int | None = _ANSWER_SECONDS) -> str | None:
    """Return the last line that a failed command wrote, and None for one that succeeded."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"exit {done.returncode}")
