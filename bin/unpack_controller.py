"""Install the daemon from the wheels beside this file: ``unpack.py PREFIX``, for ``install.sh``.

Each version gets a directory of its own, ``PREFIX/versions/VERSION``, and ``PREFIX/bin`` leads to
the newest one. So the holders of running sessions keep the code that they were started with. Needs
neither pip nor the package python3-venv.
"""

import os
import re
import shlex
import shutil
import sys
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

OLDEST = (3, 11)
SCRIPT = """#!{interpreter}
import sys
from controller_client.cli import console
console()
"""
# The kernel takes neither a blank nor more than 127 bytes as the path of an interpreter. Then a
# shell runs the second line, which is a string to Python.
BY_SHELL = """/bin/sh
'''exec' {python} "$0" "$@"
' '''"""
_LONGEST_INTERPRETER = 127


def main(prefix: Path, wheels: Path) -> int:
    """Install the wheels for this Python; returns 1 after a message if that cannot be."""
    if sys.version_info < OLDEST:
        sys.stderr.write("unpack.py: this needs Python 3.11 or newer\n")
        return 1
    chosen = [wheel for wheel in sorted(wheels.glob("*.whl")) if is_for_this_python(wheel.name)]
    names = {wheel.name.split("-")[0] for wheel in chosen}
    missing = {wheel.name.split("-")[0] for wheel in wheels.glob("*.whl")} - names
    if missing:
        found = ".".join(map(str, sys.version_info[:2]))
        sys.stderr.write(f"unpack.py: nothing of {sorted(missing)} is for Python {found}\n")
        return 1
    # The daemon's user has to reach it, whatever the umask of who installs.
    os.umask(0o022)
    place = prefix / "versions" / _name_of(chosen)
    # A Python that has gone since leaves a link to nothing.
    if not all((place / "bin" / name).exists() for name in ("holdline-controller", "python")):
        _unpack(chosen, place)
    _lead_to(prefix / "bin", place / "bin")
    sys.stdout.write(f"{place}\n")
    return 0


def is_for_this_python(name: str) -> bool:
    """Tell whether a wheel of this bundle's platform runs on this Python."""
    python, abi, _ = name.removesuffix(".whl").rsplit("-", 3)[1:]
    if abi == "none":
        return "py3" in python.split(".")
    minor = int(re.fullmatch(r"cp3(\d+)", python)[1])
    own = sys.version_info[1]
    return minor <= own if abi == "abi3" else minor == own


def _name_of(wheels: list[Path]) -> str:
    """The daemon's version with a digest of all that is installed, and of this Python."""
    digest = sha256(f"{sys.version_info[:2]}".encode())
    for wheel in wheels:
        digest.update(wheel.read_bytes())
    (own,) = (wheel for wheel in wheels if wheel.name.startswith("holdline_controller-"))
    return f"{own.name.split('-')[1]}-{digest.hexdigest()[:12]}"


def _unpack(wheels: list[Path], place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    builder = venv.EnvBuilder(symlinks=True, with_pip=False)
    builder.create(place)
    (packages,) = (place / "lib").glob("python3*/site-packages")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    script = place / "bin" / "holdline-controller"
    draft = script.with_suffix(".new")
    draft.write_text(SCRIPT.format(interpreter=_interpreter(place / "bin" / "python")))
    draft.chmod(0o755)
    # The last step: a directory with this file is whole, also after a crash of the machine.
    os.sync()
    draft.rename(script)


def _interpreter(python: Path) -> str:
    if re.search(r"\s", str(python)) or len(os.fsencode(python)) >= _LONGEST_INTERPRETER:
        return BY_SHELL.format(python=shlex.quote(str(python)))
    return str(python)


def _lead_to(link: Path, target: Path) -> None:
    draft = link.with_name(f".{link.name}.{os.getpid()}")
    # One that was killed may have had the same number, as in a container.
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        # The environment of an installation by hand, as earlier versions asked for.
        link.rename(link.with_name(f"{link.name}.before"))
    draft.replace(link)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(__file__).resolve().parent / "wheels"))
