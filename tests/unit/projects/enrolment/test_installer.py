"""``install.sh`` as a server fills it in: what it refuses, before it fetches anything."""

import os
import platform
import subprocess
from pathlib import Path

_SCRIPT = Path(__file__).parents[4] / "projects/enrolment/install.sh"


def _run(home: Path, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the script of a server that has a bundle for this machine, and gives out nothing."""
    own = f"{platform.system().lower()}-{platform.machine()} {'0' * 64}"
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
