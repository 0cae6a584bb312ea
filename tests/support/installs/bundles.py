"""Bundles of the daemon, as a server gives them to its hosts."""

import gzip
import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def build_bundle(directory: Path) -> Path:
    """Make the bundle of this machine's platform, for this Python alone."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    command = [sys.executable, "bin/build_controller.py", "--platform", "own", "--python", version]
    if shutil.which("dpkg-deb"):
        command.append("--deb")
    subprocess.run([*command, "--output", str(directory)], cwd=ROOT, check=True)
    (bundle,) = directory.glob("*.tar.gz")
    return bundle


def make_newer(bundle: Path) -> None:
    """Change the daemon in the bundle, as the next release does."""
    packed = io.BytesIO()
    with tarfile.open(bundle) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in old:
            file = old.extractfile(member)
            content = file.read() if file is not None else b""
            if "holdline_controller-" in member.name:
                content = _with_one_more_line(content)
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    bundle.write_bytes(gzip.compress(packed.getvalue()))


def _with_one_more_line(wheel: bytes) -> bytes:
    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(wheel)) as old,
        zipfile.ZipFile(changed, "w") as new,
    ):
        for name in old.namelist():
            more = b"# newer\n" if name == "controller_client/config/errors.py" else b""
            new.writestr(name, old.read(name) + more)
    return changed.getvalue()
