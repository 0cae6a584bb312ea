"""A Debian package repository made for a test, and a configuration of apt-get for it.

With the configuration apt-get sees no other repository and needs no network.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.accounts import requires, requires_root
from tests.support.running.exclusion import alone_with

_VERSION = "1.0"
INSTALLED_PACKAGES = Path("/var/lib/dpkg")
"""The directory of dpkg's records. Whoever changes them in a test is alone with it."""


@dataclass(frozen=True)
class Repository:
    """A package that depends on another one, so that apt-get asks before it installs both."""

    configuration: Path
    application: str
    library: str

    @property
    def command(self) -> str:
        """The command line that installs the application."""
        return f"apt-get -c {self.configuration} install {self.application}"

    @property
    def is_installed(self) -> bool:
        query = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Status}", self.application],
            check=False,
            capture_output=True,
            text=True,
        )
        return query.stdout == "install ok installed"

    def purge(self) -> None:
        subprocess.run(
            ["dpkg", "--purge", self.application, self.library], check=False, capture_output=True
        )


def _build(directory: Path, name: str, depends: str) -> str:
    tree = directory / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = (
        f"Package: {name}\nVersion: {_VERSION}\nArchitecture: all\n"
        "Maintainer: Tests <tests@example.org>\n"
    )
    control += (f"Depends: {depends}\n" if depends else "") + "Description: built by a test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    deb = directory / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(deb)],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(tree)
    body = deb.read_bytes()
    return (
        f"{control}Filename: ./{deb.name}\nSize: {len(body)}\n"
        f"SHA256: {hashlib.sha256(body).hexdigest()}\n"
    )


@contextmanager
def apt_repository() -> Iterator[Repository]:
    """A repository in a directory, and the configuration that shows apt-get no other."""
    requires_root()
    requires("apt-get", "dpkg-deb")
    directory = Path(tempfile.mkdtemp(prefix="holdline-apt-"))
    directory.chmod(0o755)
    suffix = directory.name.rpartition("-")[2].replace("_", "").lower()
    application, library = f"holdline-app-{suffix}", f"holdline-lib-{suffix}"
    stanzas = [_build(directory, library, ""), _build(directory, application, library)]
    (directory / "Packages").write_text("\n".join(stanzas))
    (directory / "sources.list").write_text(f"deb [trusted=yes] file:{directory} ./\n")
    for needed in ("lists/partial", "cache/archives/partial"):
        (directory / needed).mkdir(parents=True)
    configuration = directory / "apt.conf"
    configuration.write_text(
        f'Dir::Etc::SourceList "{directory}/sources.list";\nDir::Etc::SourceParts "-";\n'
        f'Dir::State::Lists "{directory}/lists";\nDir::Cache "{directory}/cache";\n'
        'APT::Sandbox::User "root";\nDPkg::Lock::Timeout "120";\n'
    )
    repository = Repository(configuration, application, library)
    with alone_with(INSTALLED_PACKAGES):
        subprocess.run(
            ["apt-get", "-c", str(configuration), "update"], check=True, capture_output=True
        )
        try:
            yield repository
        finally:
            repository.purge()
            shutil.rmtree(directory, ignore_errors=True)
