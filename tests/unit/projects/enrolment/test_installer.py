"""``install.sh`` as a server fills it in: what it refuses, before it fetches anything."""

import io
import os
import platform
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.http import Http404
from django.test import RequestFactory

from projects.enrolment import installer

_SCRIPT = Path(__file__).parents[4] / "projects/enrolment/install.sh"


def _run(
    home: Path, *options: str, digest: str = "0" * 64, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the script of a server that has a bundle for this machine, and gives out nothing."""
    own = f"{platform.system().lower()}-{platform.machine()} {digest}"
    script = _SCRIPT.read_text().replace("@SERVER@", "http://127.0.0.1:9")
    return subprocess.run(
        ["sh", "-s", "--", "--user", *options],
        input=script.replace("@BUNDLES@", own),
        env={"PATH": os.environ["PATH"], "HOME": str(home), "USER": "ada", **variables},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_directory_of_something_else_is_not_installed_into(tmp_path: Path) -> None:
    prefix = tmp_path / ".local/share/holdline"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "manage.py").touch()
    refused = _run(tmp_path, "--dry-run")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "files of something else" in refused.stderr
    (prefix / "manage.py").unlink()
    (prefix / "bin").rmdir()
    assert _run(tmp_path, "--dry-run").returncode == 0


def test_the_daemon_of_the_debian_package_is_not_installed_beside(tmp_path: Path) -> None:
    command = tmp_path / "package/bin/holdline-controller"
    own = f"{platform.system().lower()}-{platform.machine()} {'0' * 64}"
    script = _SCRIPT.read_text().replace("@SERVER@", "http://127.0.0.1:9")
    script = script.replace("@BUNDLES@", own).replace("/opt/holdline", str(tmp_path / "prefix"))
    script = script.replace("/usr/lib/holdline-controller", str(command.parents[1]))

    def dry_run() -> str:
        ran = subprocess.run(
            ["sh", "-s", "--", "--dry-run"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.stdout + ran.stderr

    assert dry_run().startswith("Install the daemon")
    command.parent.mkdir(parents=True)
    command.touch()
    assert "has the Debian package" in dry_run()


def test_uninstalling_leaves_what_it_did_not_put_there(tmp_path: Path) -> None:
    prefix, bin_directory = tmp_path / ".local/share/holdline", tmp_path / ".local/bin"
    for directory in (prefix / "bin", prefix / "versions", bin_directory):
        directory.mkdir(parents=True)
    (prefix / "manage.py").touch()
    command = prefix / "bin/holdline-controller"
    command.write_text("#!/bin/sh\necho no sessions\n")
    command.chmod(0o755)
    (bin_directory / command.name).symlink_to(command)
    removed = _run(tmp_path, "--uninstall")
    assert (removed.returncode, removed.stderr) == (0, "")
    assert [path.name for path in prefix.iterdir()] == ["manage.py"]
    assert _run(tmp_path, "--uninstall").returncode == 0


def test_uninstalling_keeps_the_code_of_sessions_that_cannot_be_listed(tmp_path: Path) -> None:
    command = tmp_path / ".local/share/holdline/bin/holdline-controller"
    command.parent.mkdir(parents=True)
    (tmp_path / ".local/share/holdline/versions").mkdir()
    command.write_text('#!/bin/sh\n[ "$1" != sessions ] || exit 78\n')
    command.chmod(0o755)
    kept = _run(tmp_path, "--uninstall")
    assert (kept.returncode, "which its sessions still use" in kept.stdout) == (0, True)
    assert command.exists()


def test_a_code_comes_from_a_file_and_a_proxy_from_the_environment(tmp_path: Path) -> None:
    absent = _run(tmp_path, "--code-file", "absent", "--dry-run")
    assert absent.returncode == 1
    assert "cannot read absent" in absent.stderr
    (tmp_path / "code").write_text("enr_secret\n")
    (tmp_path / "curl").write_text('#!/bin/sh\necho "curl $* through $http_proxy"; exit 22\n')
    (tmp_path / "curl").chmod(0o755)
    path, proxy = f"{tmp_path}:{os.environ['PATH']}", "http://ada:word@proxy:3128"
    ran = _run(tmp_path, "--code-file", "code", PATH=path, HOLDLINE_PROXY=proxy)
    assert ran.returncode == 22
    arguments, _, through = ran.stdout.partition("curl ")[2].partition(" through ")
    assert through.strip() == proxy
    assert "word" not in arguments
    assert "enr_secret" not in ran.stdout


# In the place of a bundle's unpack.py: the command that it installs writes down how it is run.
_UNPACK = """
import pathlib, sys
command = pathlib.Path(sys.argv[1]) / "bin/holdline-controller"
command.parent.mkdir(parents=True)
command.write_text('#!/bin/sh\\necho "ran $* with <$HOLDLINE_PROXY>"\\n')
command.chmod(0o755)
"""


def test_no_other_user_sees_the_password_of_a_proxy(tmp_path: Path) -> None:
    bundle, script = tmp_path / "bundle", _UNPACK.encode()
    with tarfile.open(bundle, "w:gz") as archive:
        member = tarfile.TarInfo("holdline-controller/unpack.py")
        member.size = len(script)
        archive.addfile(member, io.BytesIO(script))
    (tmp_path / "curl").write_text(
        f'#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done\ncp {bundle} "$2"\n'
    )
    (tmp_path / "curl").chmod(0o755)
    digest, path = sha256(bundle.read_bytes()).hexdigest(), f"{tmp_path}:{os.environ['PATH']}"
    for options, variables in (
        ((), {"HOLDLINE_PROXY": "http://ada:word@proxy:3128"}),
        (("--proxy", "http://ada:word@proxy:3128"), {}),
    ):
        ran = _run(tmp_path, *options, digest=digest, PATH=path, **variables)
        assert ran.returncode == 0, ran.stderr
        install = ran.stdout.splitlines()[-1]
        assert install.startswith("ran service install --server")
        arguments, _, environment = install.partition(" with ")
        assert ("word" in arguments, environment) == (False, "<http://ada:word@proxy:3128>")
        (tmp_path / ".local/share/holdline/bin/holdline-controller").unlink()
        (tmp_path / ".local/share/holdline/bin").rmdir()
        (tmp_path / ".local/share/holdline").rmdir()


def test_a_module_in_the_directory_of_the_call_is_not_executed(tmp_path: Path) -> None:
    # Root may run the line in a directory that others can write to, such as /tmp.
    for name in ("platform.py", "sys.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    assert _run(tmp_path, "--dry-run", "--python", "/usr/bin/python3").returncode == 0
    assert not (tmp_path / "executed").exists()


def test_the_installed_version_is_kept_however_its_path_is_spelled(tmp_path: Path) -> None:
    versions = tmp_path / "share/holdline/versions"
    for name in ("1", "2"):
        (versions / name / "bin").mkdir(parents=True)
    (tmp_path / "share/holdline/bin").symlink_to(versions / "2/bin")
    text = _SCRIPT.read_text()
    begin = text.index("forget_old_versions() {")
    function = text[begin : text.index("\n}\n", begin) + 3]
    script = f"prefix={tmp_path}//share/holdline\n{function}forget_old_versions"
    subprocess.run(["sh", "-euc", script], check=True)
    assert [path.name for path in versions.iterdir()] == ["2"]


def test_a_bundle_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, settings: Any) -> None:
    settings.BUNDLE_DIR, settings.PUBLIC_URL = str(tmp_path), "https://holdline.example"
    good, bad = (f"holdline-controller-linux-{name}.tar.gz" for name in ("x86_64", "aarch64"))
    (tmp_path / good).write_bytes(b"bundle")
    (tmp_path / bad).mkdir()
    request = RequestFactory().get("/install.sh")
    script = installer.install_script(request).content.decode()
    assert f"linux-x86_64 {sha256(b'bundle').hexdigest()}" in script
    assert "linux-aarch64 " not in script
    assert installer.bundle(request, good).content == b"bundle"
    for name in (bad, good.replace("x86_64", "riscv64")):
        with pytest.raises(Http404):
            installer.bundle(request, name)
