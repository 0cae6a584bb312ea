"""The virtual environment ``.venv``: made once, and filled from a lock file with hashes.

It is reused until the lock changes. ``bin/test`` adds the development tools with ``python3 -m
quickstart.environment requirements-dev.txt``.
"""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from quickstart.console import Console
from quickstart.errors import QuickstartError, StepFailed
from quickstart.options import ROOT
from quickstart.preflight import check_directory_is_writable, check_venv_module, lock_alone

VENV = ROOT / ".venv"
_MADE_AT = str(VENV.resolve())
PYTHON = VENV / "bin" / "python"
_STAMP = VENV / "holdline-installed.json"
_LOG = VENV / "install.log"
_TAIL_LINES = 15
_LOCKED = "requirements.txt"
# The development lock contains the whole other lock, at the same versions.
_ALSO_SATISFIES = {"requirements-dev.txt": ("requirements.txt",)}


def ensure(lock: str, console: Console) -> Path:
    """Make and fill ``.venv`` as needed; returns the path of its Python.

    ``lock`` is the name of a lock file in the checkout. Raises QuickstartError.
    """
    if _is_in_place() and _stamp().get(lock) == _digest(lock):
        return PYTHON
    check_directory_is_writable(ROOT, "The checkout must be writable: .venv is made in it.")
    with _alone(console):
        # Another run may have done it while this one waited.
        if not (is_in_place := _is_in_place()):
            _make(console)
        if not is_in_place or _stamp().get(lock) != _digest(lock):
            _install(lock, console)
            _write_stamp(lock)
    return PYTHON


@contextmanager
def _alone(console: Console) -> Iterator[None]:
    """Wait until no other run makes or fills ``.venv``, and keep others out of the block.

    All runs lock one file that every checkout has, because ``.venv`` itself may be made anew.
    """
    with (ROOT / _LOCKED).open() as locked:
        try:
            lock_alone(locked, waits=False)
        except BlockingIOError:
            console.step("Waiting for another run that fills .venv")
            lock_alone(locked, waits=True)
        yield


def _is_in_place() -> bool:
    return _stamp().get("path", _MADE_AT) == _MADE_AT and _runs(PYTHON)


def _make(console: Console) -> None:
    check_venv_module()
    console.step(f"Making .venv with Python {platform.python_version()}")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise StepFailed("making .venv", None, _tail((made.stdout + made.stderr).splitlines()))


def _install(lock: str, console: Console) -> None:
    total = sum(1 for line in (ROOT / lock).read_text().splitlines() if line[:1].isalnum())
    console.step(f"Installing {total} packages from {lock} (a minute or two on the first run)")
    command = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--require-hashes",
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar",
        "off",
    ]
    lines: list[str] = []
    started = time.monotonic()
    with (
        _LOG.open("w") as log,
        subprocess.Popen(
            [*command, "-r", str(ROOT / lock)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=ROOT,
        ) as pip,
    ):
        seen = 0
        for line in pip.stdout or ():
            log.write(line)
            lines.append(line.rstrip())
            what = line.split()
            if line.startswith(("Collecting ", "Requirement already satisfied: ")):
                seen += 1
                name = what[1 if what[0] == "Collecting" else 3].partition("==")[0]
                console.progress(f"[{seen}/{total}] {name}")
            elif line.startswith("Installing collected packages"):
                console.progress(f"unpacking {seen} packages")
    if pip.returncode:
        raise StepFailed(
            "installing the dependencies",
            _LOG,
            _tail(lines),
            f"Check the network, then run this again. Whole log: {_LOG}",
        )
    console.line(f"    done in {time.monotonic() - started:.0f} s")


def _runs(python: Path) -> bool:
    # The interpreter of ``.venv`` is a link, which is dead once the system's Python is replaced.
    try:
        return (
            subprocess.run([str(python), "-c", ""], capture_output=True, check=False).returncode
            == 0
        )
    except OSError:
        return False


def _digest(lock: str) -> str:
    return sha256((ROOT / lock).read_bytes()).hexdigest()


def _stamp() -> dict[str, str]:
    """The digest of each installed lock by its name, and the ``path`` where ``.venv`` was made.

    An environment that was moved has stale paths inside.
    """
    try:
        stamp: dict[str, str] = json.loads(_STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def _write_stamp(lock: str) -> None:
    satisfied = {name: _digest(name) for name in (lock, *_ALSO_SATISFIES.get(lock, ()))}
    _STAMP.write_text(json.dumps({"path": _MADE_AT, **satisfied}, indent=2) + "\n")


def _tail(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines[-_TAIL_LINES:])


def main(locks: Sequence[str]) -> int:
    """Fill ``.venv`` from each lock; returns 1 after a message if that fails, else 0."""
    console = Console(sys.stderr)
    try:
        for lock in locks:
            ensure(lock, console)
    except QuickstartError as error:
        console.error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
