"""Make the bundles of the daemon for its hosts, for ``bin/build-controller``.

A bundle is one file for a platform. It has the daemon's wheel, the wheels of its locked
dependencies for each supported Python, and ``unpack.py``, which installs them without pip. Every
wheel of others is checked against the hash in the lock. The same checkout gives the same bytes.
"""

import argparse
import gzip
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "controller_client"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# The platforms, with the architecture's name in the tags of wheels.
PLATFORMS = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}
# glibc 2.28, of Debian 10 and RHEL 8, and everything older.
_GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1")
_DIRECTORY = "holdline-controller"
_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
_PACKAGE = ROOT / "deploy" / "deb"
# A file in a zip has a date from 1980 on; this is the first day of it.
_EPOCH = "315532800"
_ENTRY = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==(?:.*\n(?:[ \t]+.*\n)*)", re.MULTILINE)
_VIA = re.compile(r"^ +# +(?:via )?([\w.-]+)$", re.MULTILINE)


def main() -> int:
    """Make the chosen bundles; returns 1 after a message if that fails."""
    options = _parser().parse_args()
    # The server's user has to read them, whatever the umask of who makes them.
    os.umask(0o022)
    platforms, pythons = options.platform or list(PLATFORMS), options.python or list(PYTHONS)
    # What was made for fewer platforms or Pythons is not what is asked for now.
    stamp, asked = options.output / "source.sha256", f"{platforms} {pythons} {options.deb}\0"
    source = sha256(f"{asked}{_source()}".encode()).hexdigest()
    bundles = [_bundle(options.output, name) for name in platforms]
    if (
        options.if_changed
        and stamp.exists()
        and stamp.read_text() == source
        and all(bundle.exists() for bundle in bundles)
    ):
        return 0
    if find_spec("pip") is None:
        sys.stderr.write(
            f"bin/build-controller: {sys.executable} has no pip. Make an environment that has it: "
            "python3 -m venv .venv\n"
        )
        return 1
    # A run that is cut short leaves bundles of two sources, which no stamp may call current.
    stamp.unlink(missing_ok=True)
    try:
        for made in build(
            options.output,
            platforms,
            pythons,
            with_deb=options.deb,
        ):
            sys.stdout.write(f"{sha256(made.read_bytes()).hexdigest()}  {made}\n")
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"bin/build-controller: {error.stderr or error}\n")
        return 1
    stamp.write_text(source)
    return 0


def _source() -> str:
    """Return a digest of everything that the bundles are made from."""
    digest = sha256()
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".toml", ".md"}]
    files += [
        *(SOURCE / "deploy").iterdir(),
        *_PACKAGE.iterdir(),
        *(ROOT / "bin").glob("*_controller.py"),
    ]
    for path in sorted([*files, ROOT / "requirements.txt"]):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bin/build-controller",
        description="Make the bundles of the daemon that a server gives to its hosts.",
    )
    parser.add_argument(
        "--output",
        type=lambda text: Path(text).absolute(),
        default=ROOT / ".holdline" / "bundles",
        metavar="DIR",
        help="where they go (default: .holdline/bundles, where a server of this checkout looks)",
    )
    parser.add_argument(
        "--platform",
        action="append",
        type=lambda name: own_platform() if name == "own" else name,
        choices=[*PLATFORMS, "own"],
        help="one platform, or the one of this machine; can be repeated (default: all)",
    )
    parser.add_argument(
        "--deb", action="store_true", help="make a Debian package of each too; needs dpkg-deb"
    )
    parser.add_argument(
        "--if-changed",
        action="store_true",
        help="do nothing if the last bundles were made from the same source",
    )
    parser.add_argument(
        "--python",
        action="append",
        choices=PYTHONS,
        help="one version of Python; can be repeated (default: all)",
    )
    return parser


def own_platform() -> str:
    """Return the name of this machine's platform."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


def build(
    output: Path, platforms: Iterable[str], pythons: Iterable[str], *, with_deb: bool
) -> Iterator[Path]:
    """Yield each bundle, and each Debian package, once it is made. Raises CalledProcessError."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        own = _own_wheel(Path(scratch))
        lock = Path(scratch) / "lock.txt"
        lock.write_text("".join(_locked(_direct_dependencies(), "requirements.txt")))
        for name in platforms:
            wheels = Path(scratch) / name
            _download(lock, wheels, PLATFORMS[name], pythons)
            shutil.copy(own, wheels)
            bundle = _bundle(output, name)
            _pack(sorted(wheels.iterdir()), bundle)
            yield bundle
            if with_deb:
                yield _make_deb(wheels, output, PLATFORMS[name])


def _bundle(output: Path, platform_name: str) -> Path:
    return output / f"{_DIRECTORY}-{platform_name}.tar.gz"


def _own_wheel(scratch: Path) -> Path:
    """Build the daemon's wheel with the setuptools of the lock, from a copy of the source."""
    lock, tools = scratch / "setuptools.txt", scratch / "setuptools"
    lock.write_text("".join(_locked({"setuptools"}, "requirements-dev.txt")))
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes"]
    _run([*pip, "--target", str(tools), "-r", str(lock)])
    copy = scratch / SOURCE.name
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg*"))
    for path in copy.rglob("*"):
        # A file's mode is in the wheel, and depends on the umask of who cloned.
        path.chmod(0o755 if path.is_dir() else 0o644)
    make = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    _run(
        [sys.executable, "-c", make, str(scratch)],
        cwd=copy,
        env={"PYTHONPATH": str(tools), "SOURCE_DATE_EPOCH": _EPOCH, "PATH": "/usr/bin:/bin"},
    )
    (built,) = scratch.glob("*.whl")
    return built


def _direct_dependencies() -> set[str]:
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    return {re.split("[<>=]", entry)[0].strip() for entry in project["dependencies"]}


def _locked(wanted: set[str], lock: str) -> list[str]:
    """Return the entries of the lock for the wanted packages and for what they need."""
    entries = {match[1].lower(): match[0] for match in _ENTRY.finditer((ROOT / lock).read_text())}
    needed: set[str] = set()
    found = wanted & entries.keys()
    while found - needed:
        needed |= found
        found = {name for name, entry in entries.items() if needed & set(_VIA.findall(entry))}
    return [entries[name] for name in sorted(needed)]


def _download(lock: Path, directory: Path, architecture: str, pythons: Iterable[str]) -> None:
    """Fetch the wheels of the lock for every Python, each checked against its hash."""
    for version in pythons:
        # --no-deps: the lock has everything, and markers are left to unpack.py.
        command = [sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", version]
        for glibc in _GLIBC:
            command += ["--platform", f"{glibc}_{architecture}"]
        _run([*command, "-r", str(lock), "--dest", str(directory)])


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd, env=env)


def _pack(wheels: Iterable[Path], bundle: Path) -> None:
    """Write the files in order and without times or owners, and move the whole into place."""
    draft = bundle.with_suffix(".new")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        _add(archive, "unpack.py", (ROOT / "bin" / "unpack_controller.py").read_bytes())
        for wheel in wheels:
            _add(archive, f"wheels/{wheel.name}", _content(wheel))
    with draft.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as compressed:
        compressed.write(packed.getvalue())
    draft.replace(bundle)


def _make_deb(wheels: Path, output: Path, architecture: str) -> Path:
    """Make the Debian package from the files in ``deploy/deb`` and the wheels."""
    (own,) = wheels.glob("holdline_controller-*")
    version = re.sub(r"\.?(dev|a|b|rc)", r"~\1", own.name.split("-")[1])
    debian = _DEBIAN[architecture]
    tree = wheels.with_suffix(".deb")
    library, unit = tree / "usr/lib/holdline-controller", "holdline-controller.service"
    shutil.copytree(wheels, library / "wheels")
    shutil.copy(ROOT / "bin" / "unpack_controller.py", library / "unpack.py")
    _place(tree / "usr/bin/holdline-controller").symlink_to(
        "../lib/holdline-controller/bin/holdline-controller"
    )
    text = (SOURCE / "deploy" / unit).read_text()
    _place(tree / "lib/systemd/system" / unit).write_text(
        text.replace("/opt/holdline/bin/", "/usr/bin/")
    )
    shutil.copy(_PACKAGE / "controller.toml", _place(tree / "etc/holdline/controller.toml"))
    control = _place(tree / "DEBIAN/control")
    control.write_text(
        (_PACKAGE / "control")
        .read_text()
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", debian)
    )
    (tree / "DEBIAN/conffiles").write_text("/etc/holdline/controller.toml\n")
    for script in ("postinst", "prerm", "postrm", "triggers"):
        shutil.copy(_PACKAGE / script, tree / "DEBIAN" / script)
    for path in tree.rglob("*"):
        is_open = path.is_dir() or path.name in {"postinst", "prerm", "postrm"}
        if not path.is_symlink():
            path.chmod(0o755 if is_open else 0o644)
    made = output / f"{_DIRECTORY}_{version}_{debian}.deb"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}
    _run(["dpkg-deb", "--root-owner-group", "--build", str(tree), str(made)], env=environment)
    return made


def _place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _content(wheel: Path) -> bytes:
    """Return the bytes of a wheel, of which a part that cannot be read would be found here."""
    with zipfile.ZipFile(wheel) as archive:
        if (broken := archive.testzip()) is not None:
            raise ValueError(f"{wheel.name}: {broken} is broken")
    return wheel.read_bytes()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(f"{_DIRECTORY}/{name}")
    member.size, member.mode = len(content), 0o644
    archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    sys.exit(main())
