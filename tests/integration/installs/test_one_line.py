"""The one line that makes a machine a host, with a real server: install, upgrade, uninstall."""

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installs.bundles import build_bundle, make_newer
from tests.support.management import manage_well
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
HOW_TO = ROOT / "docs/howto/run-a-controller.md"
USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack() as stack:
        build_bundle(stack.data_dir / "bundles")
        yield stack


def origin_of(server: Stack) -> str:
    """The address of a server, without a slash at the end."""
    return f"http://127.0.0.1:{server.port}"


class Machine:
    """A user's home to install into, and what is run there."""

    def __init__(self, home: Path, server: Stack) -> None:
        self.home, self.server = home, server
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "USER": USER,
        }
        self.versions = home / ".local/share/holdline/versions"

    def install(self, *options: str, is_right: bool = True) -> str:
        """Run the one line, in a shell as a person does."""
        line = (
            f"curl -fsSL {origin_of(self.server)}/install.sh | sh -s -- --user {' '.join(options)}"
        )
        ran = subprocess.run(
            ["sh", "-c", line],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert (ran.returncode == 0) == is_right, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the installed command."""
        return subprocess.run(
            [str(self.home / ".local/bin/holdline-controller"), *arguments],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    def starting(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start the installed command, which goes on."""
        command = [str(self.home / ".local/bin/holdline-controller"), *arguments]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.home, stdout=subprocess.PIPE
        )

    def code(self, name: str) -> str:
        """An enrolment code of the server's operator."""
        return manage_well(self.server, "create_enrolment_code", "first", name).strip()


@pytest.fixture
def machine(tmp_path: Path, server: Stack) -> Iterator[Machine]:
    """The home has a blank and what systemd expands, as those of other systems' users may have."""
    home = tmp_path / "a %home"
    home.mkdir()
    machine = Machine(home, server)
    yield machine
    if (home / ".local/bin/holdline-controller").exists():
        machine.run("service", "uninstall", "--user", "--end-sessions", "--purge")


async def test_one_line_makes_a_host_that_answers_and_upgrades_in_a_session(
    machine: Machine, server: Stack
) -> None:
    said = machine.install("--run-as", USER, "--dry-run", "--code", "enr_x")
    assert "Enrol this host with the code" in said
    assert not (machine.home / ".local").exists()

    said = machine.install("--run-as", USER, "--code", machine.code("one-line"))
    assert "enrolled as first/one-line" in said
    assert "connected (" in said
    assert "enr_" not in said
    (first,) = machine.versions.iterdir()

    async with server.caller() as caller:
        ask = 'bash -c \'read -p "Name: " name; echo hello $name; read -p "Again: " x\''
        terminal = await caller.start(ask, controller="one-line")
        await terminal.until_output("Name:")
        listed = json.loads(machine.run("sessions", "--json").stdout)
        assert [(one["session_id"], one["is_running"]) for one in listed] == [
            (terminal.session_id, True)
        ]

        (bundle,) = (server.data_dir / "bundles").glob("*.tar.gz")
        make_newer(bundle)
        said = machine.install("--upgrade")
        assert "connected (" in said
        # The session's holder still runs the code that it was started with.
        assert first in set(machine.versions.iterdir())
        assert len(list(machine.versions.iterdir())) == 2
        await terminal.send("ada\n")
        await terminal.until_output("hello ada")

        status = machine.run("service", "status", "--user", "--json")
        assert status.returncode == 0
        assert json.loads(status.stdout)["sessions"] == 1
        killed = machine.run("kill", terminal.session_id[:8])
        assert killed.stdout == f"{terminal.session_id}  ended\n"
        await terminal.until("exited")

    machine.install("--upgrade")
    assert first not in set(machine.versions.iterdir())
    said = machine.install("--uninstall", "--purge")
    assert "removed" in said
    left = [path for path in machine.home.rglob("*") if "holdline" in path.name or path.is_file()]
    assert left == []
    assert "nothing is installed" in machine.install("--uninstall")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_the_debian_package_has_the_unit_the_command_and_a_conffile(
    server: Stack, tmp_path: Path
) -> None:
    (package,) = (server.data_dir / "bundles").glob("*.deb")
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(tmp_path)], check=True)
    assert (tmp_path / "DEBIAN/conffiles").read_text() == "/etc/holdline/controller.toml\n"
    for script in ("postinst", "prerm", "postrm"):
        assert os.access(tmp_path / "DEBIAN" / script, os.X_OK)
        subprocess.run(["sh", "-n", str(tmp_path / "DEBIAN" / script)], check=True)
    # Another Python of the host has the daemon installed for that one.
    assert (tmp_path / "DEBIAN/triggers").read_text() == "interest-noawait /usr/bin/python3\n"
    unit = (tmp_path / "lib/systemd/system/holdline-controller.service").read_text()
    assert "ExecStart=/usr/bin/holdline-controller run\n" in unit
    library = tmp_path / "usr/lib/holdline-controller"
    made = subprocess.run(
        [sys.executable, str(library / "unpack.py"), str(library)], capture_output=True, check=True
    )
    assert made.stdout
    # The command of the package leads into what postinst makes.
    command = library / "bin/holdline-controller"
    link = tmp_path / "usr/bin/holdline-controller"
    assert (link.parent / link.readlink()).resolve() == command.resolve()
    assert command.exists()


@pytest.mark.parametrize(
    ("arguments", "is_enabled", "done"),
    [
        ("configure", True, "daemon-reload enable is-enabled start"),
        ("configure 0.2.0", True, "daemon-reload is-enabled start"),
        ("triggered /usr/bin/python3", True, "daemon-reload is-enabled start"),
        # The service was disabled or uninstalled, and the credential was kept.
        ("configure 0.2.0", False, "daemon-reload is-enabled"),
        ("triggered /usr/bin/python3", False, "daemon-reload is-enabled"),
    ],
)
def test_the_debian_package_starts_no_service_that_was_disabled(
    tmp_path: Path, arguments: str, is_enabled: bool, done: str
) -> None:
    for directory in ("bin", "lib/bin", "state", "etc", "systemd"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "state/credential").touch()
    did, status = tmp_path / "did", 0 if is_enabled else 1
    for name, text in (
        ("bin/systemctl", f'echo "$1" >>{did}; [ "$1" != is-enabled ] || exit {status}'),
        ("lib/bin/holdline-controller", f'echo "$2" >>{did}'),
        ("bin/chown", ":"),
        ("bin/chmod", ":"),
        ("bin/getent", ":"),
        ("python3", ":"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = (ROOT / "deploy/deb/postinst").read_text()
    for path, own in (
        ("/usr/lib/holdline-controller", "lib"),
        ("/var/lib/holdline-controller", "state"),
        ("/etc/holdline", "etc"),
        ("/run/systemd/system", "systemd"),
        ("/usr/bin/python3", "python3"),
    ):
        script = script.replace(path, str(tmp_path / own))
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    command = ["sh", "-s", "--", *arguments.split()]
    subprocess.run(command, input=script, env=environment, text=True, check=True)
    assert did.read_text().split() == done.split()


@pytest.mark.parametrize(("listing", "is_kept"), [("true", False), ("exit 78", True)])
def test_purging_keeps_the_code_of_sessions_that_cannot_be_listed(
    tmp_path: Path, listing: str, is_kept: bool
) -> None:
    command = tmp_path / "lib/versions/1/bin/holdline-controller"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n{listing}\n")
    command.chmod(0o755)
    script = (ROOT / "deploy/deb/postrm").read_text()
    for path in ("/usr/lib/holdline-controller", "/var/lib/holdline-controller", "/etc", "/run"):
        own = "lib" if path.startswith("/usr") else path[1:]
        script = script.replace(path, str(tmp_path / own))
    (state := tmp_path / "var/lib/holdline-controller").mkdir(parents=True)
    subprocess.run(["sh", "-s", "--", "purge"], input=script, text=True, check=True)
    assert (command.exists(), state.exists()) == (is_kept, is_kept)


def test_each_line_of_the_how_to_is_understood(machine: Machine) -> None:
    lines = [line.strip() for line in HOW_TO.read_text().splitlines() if "install.sh |" in line]
    assert len(lines) >= 2
    for line in lines:
        options = line.partition("sh -s -- ")[2].replace("enr_…", "enr_x")
        said = machine.install(options, "--dry-run", "--run-as", USER)
        assert said.startswith(("Install the daemon", "Remove the service")), line


def test_each_option_of_the_installer_and_no_other_is_in_the_how_to() -> None:
    script = (ROOT / "projects/enrolment/install.sh").read_text()
    arms = re.findall(r"^    (--[a-z-]+(?: \| --[a-z-]+)*)\)", script, re.MULTILINE)
    accepted = {option for arm in arms for option in arm.split(" | ")}
    page = HOW_TO.read_text()
    table = page.partition("| Option of `install.sh`")[2].partition("\n\n")[0]
    assert set(re.findall(r"--[a-z][a-z-]+", table)) - {"--cacert"} == accepted - {"--code"}


def _script_of(server: Stack) -> str:
    return subprocess.run(
        ["curl", "-fsS", f"{origin_of(server)}/install.sh"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_script_that_was_cut_on_the_way_does_nothing(machine: Machine, server: Stack) -> None:
    lines = _script_of(server).splitlines(keepends=True)
    for count in range(lines.index("{\n") + 1, len(lines)):
        ran = subprocess.run(
            ["sh", "-s", "--", "--user", "--run-as", USER],
            input="".join(lines[:count]),
            env=machine.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode != 0, ran.stdout) == (True, ""), lines[count - 1]
    assert list(machine.home.iterdir()) == []


def test_what_a_killed_installation_left_is_removed_or_made_whole(machine: Machine) -> None:
    half = machine.versions / "0-half"
    (half / "bin").mkdir(parents=True)
    assert "nothing is installed" in machine.install("--uninstall")
    assert not machine.versions.parent.exists()
    (half / "bin").mkdir(parents=True)
    machine.install("--run-as", USER)
    assert machine.run("--version").returncode == 0
    assert half not in machine.versions.iterdir()


def test_a_daemon_without_its_python_is_repaired_by_the_same_line(machine: Machine) -> None:
    machine.install("--run-as", USER)
    (version,) = machine.versions.iterdir()
    python = version / "bin/python"
    python.unlink()
    python.symlink_to("/usr/bin/python3.0")
    said = machine.install("--uninstall", is_right=False)
    assert "does not run. Run this line without --uninstall first" in said
    machine.install("--run-as", USER)
    assert machine.run("--version").returncode == 0


def test_a_bundle_that_was_changed_on_the_way_is_not_installed(
    machine: Machine, server: Stack
) -> None:
    (machine.home / "install.sh").write_text(_script_of(server))
    (bundle,) = (server.data_dir / "bundles").glob("*.tar.gz")
    make_newer(bundle)
    ran = subprocess.run(
        ["sh", "install.sh", "--user", "--run-as", USER],
        env=machine.environment,
        cwd=machine.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "but should have" in ran.stderr
    assert not machine.versions.exists()


def test_a_server_without_a_bundle_says_what_its_operator_runs(
    machine: Machine, server: Stack
) -> None:
    (bundle,) = (server.data_dir / "bundles").glob("*.tar.gz")
    hidden = bundle.rename(bundle.with_suffix(".hidden"))
    try:
        assert "bin/build-controller --platform" in machine.install(is_right=False)
    finally:
        hidden.rename(bundle)


def test_a_script_of_a_server_that_does_not_encrypt_does_nothing(machine: Machine) -> None:
    script = machine.server.root / "install.sh"
    origin = origin_of(machine.server)
    text = _script_of(machine.server)
    for address in ("http://holdline.example", "http://127.0.0.1.example", "http://localhost.x"):
        script.write_text(text.replace(origin, address))
        ran = subprocess.run(
            ["sh", str(script), "--user"],
            env=machine.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, "not encrypted" in ran.stderr) == (1, True), address


async def test_sessions_are_seen_and_ended_while_no_daemon_runs(
    machine: Machine, server: Stack
) -> None:
    machine.install("--run-as", USER, "--label", "gpu", "--code", machine.code("stop-start"))
    labels = server.database.rows(
        "SELECT labels FROM projects_controller WHERE name = ?", "stop-start"
    )
    assert [tuple(row) for row in labels] == [("gpu",)]
    async with server.caller() as caller:
        gate = machine.home / "gate"
        os.mkfifo(gate)
        program = f"bash -c 'echo shown; read <\"{gate}\"; echo later; cat'"
        terminal = await caller.start(program, controller="stop-start")
        await terminal.until_output("shown")
        assert "a daemon runs here" in machine.run("attach", terminal.session_id).stderr
        stopped = machine.run("service", "stop", "--user")
        assert terminal.session_id in stopped.stdout
        assert machine.run("service", "status", "--user").returncode == 3
        with machine.starting("attach", terminal.session_id) as attached:
            gate.write_text("\n")
            assert attached.stdout is not None
            # What the server has stored already is not kept here.
            assert attached.stdout.readline() == b"later\r\n"
            assert machine.run("kill", "--all").stdout == f"{terminal.session_id}  ended\n"
            attached.wait(90)
        assert "connected" in machine.run("service", "start", "--user").stdout
        # The server gets the whole end from the holder, whoever looked meanwhile.
        await terminal.until("exited")
        assert terminal.result["end_reason"] == "terminated"
        assert "later" in terminal.seen
    log = machine.run("logs").stdout
    wait_until(lambda: "connected under epoch" in machine.run("logs").stdout, 90, log)
    # A second time, a code is not used up.
    assert "enrolled already" in machine.install("--run-as", USER, "--code", "enr_unused")
