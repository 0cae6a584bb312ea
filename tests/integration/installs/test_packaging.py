"""The controller's distribution: the contents of its wheel, and a run without the project."""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.installs.wheels import build_wheel, install

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "controller_client"
DEPENDENCIES = {"msgspec", "pexpect", "tree-sitter", "tree-sitter-bash", "watchfiles", "websockets"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the controller's distribution."""
    return build_wheel(SOURCE, tmp_path_factory.mktemp("packaging"))


def test_every_module_and_deployment_file_is_in_the_wheel(wheel: Path) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCE.rglob("*.py")
        if "build" not in path.parts
    }
    deployment = {path.relative_to(ROOT).as_posix() for path in (SOURCE / "deploy").iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        assert {
            name for name in archive.namelist() if ".dist-info/" not in name
        } == modules | deployment


def test_it_depends_on_six_libraries_in_the_ranges_the_server_is_locked_to(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    required = set(metadata.get_all("Requires-Dist") or [])
    assert {_range(entry)[0] for entry in required} == DEPENDENCIES
    locked = {
        line.split("#")[0].strip() for line in (ROOT / "requirements.in").read_text().splitlines()
    }
    assert {_range(entry) for entry in locked if _range(entry)[0] in DEPENDENCIES} == {
        _range(entry) for entry in required
    }


def _range(requirement: str) -> tuple[str, frozenset[str]]:
    name = re.split("[<>=]", requirement)[0].strip()
    return name, frozenset(requirement.removeprefix(name).strip().split(","))


def test_the_installed_command_runs_with_its_dependencies_alone(
    wheel: Path, tmp_path: Path
) -> None:
    commands = install(wheel, tmp_path / "environment", (*DEPENDENCIES, "ptyprocess"))
    shown = subprocess.run(
        [commands / "holdline-controller", "--help"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "run" in shown.stdout
    modules = (
        "controller_client.server_link.daemon, controller_client.holder.process, "
        "controller_client.holder.fork_server"
    )
    everything = f"import sys, {modules}; print('django' in sys.modules)"
    imported = subprocess.run(
        [commands / "python", "-c", everything],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert imported.stdout.strip() == "False"


def _script(name: str) -> ModuleType:
    """A script of ``bin``, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"bin/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_a_server_can_read_its_bundles_whatever_the_umask_of_who_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script("build_controller")

    def build(output: Path, *_: object, **__: object) -> Iterator[Path]:
        output.mkdir()
        (output / "bundle").touch()
        yield output / "bundle"

    monkeypatch.setattr(script, "build", build)
    monkeypatch.setattr(sys, "argv", ["build-controller", "--output", str(tmp_path / "bundles")])
    before = os.umask(0o077)
    try:
        assert script.main() == 0
    finally:
        os.umask(before)
    modes = [
        path.stat().st_mode & 0o777 for path in (tmp_path / "bundles", tmp_path / "bundles/bundle")
    ]
    assert modes == [0o755, 0o644]


def test_what_is_made_already_is_made_again_only_where_something_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, made = _script("build_controller"), list[str]()

    def build(output: Path, platforms: list[str], *_: object, **__: object) -> Iterator[Path]:
        for name in platforms:
            made.append(name)
            bundle = output / f"holdline-controller-{name}.tar.gz"
            bundle.write_text(name)
            yield bundle

    def run(*options: str) -> list[str]:
        made.clear()
        words = ["build_controller.py", "--if-changed", "--output", str(tmp_path), *options]
        monkeypatch.setattr(sys, "argv", words)
        assert script.main() == 0
        return list(made)

    monkeypatch.setattr(script, "build", build)
    one, both = ["linux-x86_64"], ["linux-x86_64", "linux-aarch64"]
    assert [run("--platform", *one), run("--platform", *one)] == [one, []]
    assert [run(), run()] == [both, []]
    (tmp_path / "holdline-controller-linux-aarch64.tar.gz").unlink()
    assert run() == both


def test_a_version_is_on_the_disk_before_it_counts_as_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack = _script("unpack_controller")
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(
        tmp_path / "wheels/holdline_controller-1-py3-none-any.whl", "w"
    ) as archive:
        archive.writestr("controller_client/__init__.py", "")
    prefix, whole = tmp_path / "prefix", []
    monkeypatch.setattr(
        os, "sync", lambda: whole.append([*prefix.glob("versions/*/bin/holdline-controller")])
    )
    # What a killed installation of the same process id has left.
    prefix.mkdir()
    (prefix / f".bin.{os.getpid()}").symlink_to("nowhere")
    before = os.umask(0o022)
    try:
        assert unpack.main(prefix, tmp_path / "wheels") == 0
    finally:
        os.umask(before)
    assert whole == [[]]
    assert (prefix / "bin/holdline-controller").exists()
