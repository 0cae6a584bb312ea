"""apt-get without -y: its question, the answer, the progress, the exit code. Packages are built here; no network."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.accounts import Account, requires, requires_root
from tests.support.stack import Stack

_VERSION = "1.0"


@dataclass(frozen=True)
class Repository:
    """A package that pulls in another one, so that apt-get asks before it installs both."""

    configuration: Path
    application: str
    library: str

    @property
    def command(self) -> str:
        """Installs the application."""
        return f"apt-get -c {self.configuration} install {self.application}"

    @property
    def is_installed(self) -> bool:
        """Whether dpkg says so."""
        query = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", self.application], check=False, capture_output=True, text=True)
        return query.stdout == "install ok installed"

    def purge(self) -> None:
        """Removes both packages."""
        subprocess.run(["dpkg", "--purge", self.application, self.library], check=False, capture_output=True)


def _build(directory: Path, name: str, depends: str) -> str:
    tree = directory / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: {_VERSION}\nArchitecture: all\nMaintainer: Tests <tests@example.org>\n"
    control += (f"Depends: {depends}\n" if depends else "") + "Description: built by a test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    deb = directory / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(deb)], check=True, capture_output=True)
    shutil.rmtree(tree)
    body = deb.read_bytes()
    return f"{control}Filename: ./{deb.name}\nSize: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n"


@pytest.fixture
def repository() -> Iterator[Repository]:
    """A repository in a directory, and the configuration that makes apt-get see nothing else."""
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
        f'Dir::State::Lists "{directory}/lists";\nDir::Cache "{directory}/cache";\nAPT::Sandbox::User "root";\n'
    )
    subprocess.run(["apt-get", "-c", str(configuration), "update"], check=True, capture_output=True)
    repository = Repository(configuration, application, library)
    yield repository
    repository.purge()
    shutil.rmtree(directory, ignore_errors=True)


async def test_apt_get_asks_and_installs_after_yes(stack: Stack, repository: Repository) -> None:
    async with stack.caller() as caller:
        session = await caller.start(repository.command)
        await session.until("awaiting_input")
        assert session.kind == "line"
        assert session.result["prompt"]["text"] == "Do you want to continue? [Y/n] "
        await session.send("Y\n", wait_seconds=30)
        await session.until("exited", 60)
        assert session.result["exit_code"] == 0
        assert f"Setting up {repository.application}" in session.seen
    assert repository.is_installed


async def test_apt_get_installs_nothing_after_no(stack: Stack, repository: Repository) -> None:
    async with stack.caller() as caller:
        session = await caller.start(repository.command)
        await session.until("awaiting_input")
        await session.send("n\n")
        await session.until("exited")
        assert session.result["exit_code"] == 1
    assert not repository.is_installed


@pytest.mark.requirement("S3.V1.1", "S3.V1.2", "S3.V1.3", "S3.V1.4", "S3.V1.5")
async def test_an_ordinary_user_installs_through_sudo(unprivileged_stack: Stack, sudoer: Account, repository: Repository) -> None:
    requires("sudo")
    async with unprivileged_stack.caller() as caller:
        session = await caller.start(f"sudo -k {repository.command}")
        assert session.kind == "secret"
        await session.send(sudoer.password + "\n")
        await session.until("awaiting_input")
        assert "[Y/n]" in session.result["prompt"]["text"]
        await session.send("Y\n", wait_seconds=30)
        await session.until("exited", 60)
        assert session.result["exit_code"] == 0
        assert f"Setting up {repository.application}" in session.seen
    assert repository.is_installed
