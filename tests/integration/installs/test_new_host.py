"""A new host of root's runs programs as another user than the daemon, without being asked to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installs.bundles import build_bundle
from tests.support.installs.private_root import PrivateRoot, private_root
from tests.support.management import manage_well
from tests.support.mcp.client import Caller
from tests.support.stack import Stack, running_stack

CREDENTIAL = "/var/lib/holdline-controller/credential"
MONITOR = "5f0c1c8e-3f43-4c53-9d56-0c1f0c1d2e3f"
POLICY = "/etc/holdline/policy.toml"
WHO = f'id -un; pwd; cat {CREDENTIAL} {POLICY}; read -p "Name: " name; echo "$name"'


@pytest.fixture(scope="module")
def server() -> Iterator[Stack]:
    with running_stack() as stack:
        build_bundle(stack.data_dir / "bundles")
        yield stack


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    (scratch := tmp_path / "scratch").mkdir()
    with private_root(scratch) as root:
        yield root
        root.run("holdline-controller service uninstall --end-sessions --purge || true")


def _line(server: Stack, *options: str) -> str:
    address = f"http://127.0.0.1:{server.port}/install.sh"
    return f"curl -fsSL {address} | sh -s -- {' '.join(options)}"


def _code(server: Stack, name: str) -> str:
    return manage_well(server, "create_enrolment_code", "first", name).strip()


async def _told(server: Stack, controller: str) -> str:
    """What a program says about its user, and what it may read; it is asked a question first."""
    async with server.caller() as caller:
        terminal = await caller.start(f"bash -c '{WHO}'", controller=controller)
        await terminal.until_output("Name: ")
        assert terminal.result["prompt"]["evidence"] == "kernel"
        await terminal.send("ada\n")
        await terminal.until("exited")
        return terminal.seen


async def test_programs_of_a_new_host_read_nothing_of_the_daemons(
    root: PrivateRoot, server: Stack
) -> None:
    said = root.run(_line(server, "--dry-run"))
    assert "programs run as a user of their own, holdline-run" in said
    said = root.run(_line(server, "--code", _code(server, "new-host")))
    assert "programs run as holdline-run, the daemon as holdline" in said
    assert "connected (" in said
    told = await _told(server, "new-host")
    assert told.startswith("holdline-run\n/home/holdline-run\n")
    assert told.count("Permission denied") == 2
    assert "ctl_" not in told
    assert "programs run as holdline-run" in root.run("holdline-controller doctor || true")
    # A second time nothing changes, and a changed policy stays.
    root.run(f"sed -i 's/may_change = true/may_change = false/' {POLICY}")
    root.run(_line(server, "--code", "enr_unused"))
    assert "may_change = false" in root.run(f"cat {POLICY}")
    assert (await _told(server, "new-host")).startswith("holdline-run\n")
    root.run("holdline-controller service uninstall --end-sessions --purge")
    root.run(f"test ! -e {POLICY} && test ! -e /etc/holdline")


async def test_sudo_gives_programs_of_a_new_host_nothing_until_it_is_allowed(
    root: PrivateRoot, server: Stack
) -> None:
    # As in most containers, no systemd runs here.
    asked = "grep NoNewPrivs /proc/self/status"
    root.run(_line(server, "--code", _code(server, "without-sudo")))
    async with server.caller() as caller:
        assert "1" in await _ran(caller, asked, "without-sudo")
        for option, told in (("--allow-sudo", "0"), ("", "0"), ("--no-allow-sudo", "1")):
            assert "connected (" in root.run(_line(server, option))
            assert told in await _ran(caller, asked, "without-sudo")


async def test_logs_that_programs_write_are_followed_and_deleted(
    root: PrivateRoot, server: Stack
) -> None:
    root.run(_line(server, "--code", _code(server, "logging")))
    # Not in /tmp, which other daemons of this machine have, too.
    root.run("install -d -o holdline -g holdline -m 700 /opt/logs")
    root.run("echo 'session_logs = \"/opt/logs\"' >>/etc/holdline/controller.toml")
    assert "connected (" in root.run("holdline-controller service start")
    write = "umask 027; echo one >/opt/logs/a.log; id -un"
    async with server.caller() as caller:
        assert "holdline-run" in await _ran(caller, write)
        log = {"session_id": MONITOR, "log_file": "/opt/logs/a.log", "controller": "logging"}
        await caller.call("start_session_monitor", session_type="script", **log)
        told = await caller.call("get_session_updates", session_id=MONITOR, wait_seconds=20)
        assert "one" in str(told)
        await caller.call("stop_session_monitor", session_id=MONITOR)
        assert (await _ran(caller, "ls -A /opt/logs")).strip() == ""


async def _ran(caller: Caller, command: str, controller: str = "logging") -> str:
    """What a one-shot says."""
    done = await caller.call("execute_command", command=command, controller=controller)
    assert done["return_code"] == 0, done
    return str(done["stdout"])


async def test_one_user_stays_where_the_administrator_wants_one(
    root: PrivateRoot, server: Stack
) -> None:
    said = root.run(_line(server, "--one-user", "--code", _code(server, "one-user")))
    assert "holdline-run" not in said
    assert (await _told(server, "one-user")).startswith("holdline\n")
    # A host that is there already is as it was.
    root.run(_line(server))
    root.run(f"test ! -e {POLICY}")
    assert "so a program can read" in root.run("holdline-controller doctor || true")


def test_a_policy_that_is_there_decides_alone(root: PrivateRoot, server: Stack) -> None:
    root.run(f"mkdir -m 755 /etc/holdline && echo '[limits]' >{POLICY}")
    root.run(_line(server, "--code", _code(server, "own-policy")))
    assert root.run(f"cat {POLICY}") == "[limits]\n"
    root.run("! id holdline-run")


def test_an_installation_that_was_cut_short_goes_on_with_two_users(
    root: PrivateRoot, server: Stack
) -> None:
    # Without the address of a server the configuration cannot be written.
    root.run(_line(server))
    root.run("holdline-controller service uninstall --purge")
    said = root.run("holdline-controller service install", is_right=False)
    assert "name the server" in said
    said = root.run(_line(server, "--code", _code(server, "cut-short")))
    assert "connected (" in said
    assert "programs run as holdline-run" in root.run("holdline-controller doctor || true")


async def test_a_package_makes_such_a_host_and_its_purge_leaves_nothing(
    root: PrivateRoot, server: Stack
) -> None:
    (package,) = (server.data_dir / "bundles").glob("*.deb")
    assert "not enrolled yet" in root.run(f"dpkg -i {package} 2>&1")
    address = f"http://127.0.0.1:{server.port}"
    code = _code(server, "packaged")
    said = root.run(f"holdline-controller service install --server {address} --code {code}")
    assert "connected (" in said
    assert (await _told(server, "packaged")).startswith("holdline-run\n")
    # Removed during a session, it keeps what the session needs; purged after it, nothing is left.
    async with server.caller() as caller:
        terminal = await caller.start("cat", controller="packaged")
        assert terminal.session_id in root.run("dpkg -r holdline-controller 2>&1")
        assert "kill --all" in root.run("dpkg -P holdline-controller 2>&1")
        root.run("/usr/lib/holdline-controller/versions/*/bin/holdline-controller kill --all")
    root.run(f"dpkg -i {package} 2>&1; dpkg -P holdline-controller 2>&1")
    places = "/etc/holdline /var/lib/holdline-controller /usr/lib/holdline-controller"
    assert root.run(f"ls {places} 2>/dev/null || true") == ""


def test_a_package_is_installed_beside_what_an_administrator_has_done(
    root: PrivateRoot, server: Stack
) -> None:
    (package,) = (server.data_dir / "bundles").glob("*.deb")
    root.run("id holdline 2>/dev/null || groupadd --system holdline")
    root.run(f"dpkg -i {package} 2>&1")
    root.run("rm /etc/holdline/controller.toml")
    root.run(f"dpkg -i {package} 2>&1")
    assert root.run("dpkg-query -W -f='${Status}' holdline-controller") == "install ok installed"
    root.run("dpkg -P holdline-controller 2>&1")
