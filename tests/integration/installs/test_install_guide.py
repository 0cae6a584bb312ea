"""The commands of the guides for administrators are valid, and lead to a server and a host.

The long form carries them out, in the order of the guides, in a Debian with a systemd of its own.
"""

import json
import re
import shlex
import shutil
import subprocess
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.management import get_commands

from tests.support.installs import guide_caller
from tests.support.installs.booted_root import BootedRoot, booted_root
from tests.support.installs.guides import blocks_of, commands_of
from tests.support.installs.next_release import clone_release, make_next_release
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

_SERVER: Final = "howto/install-a-server.md"
_HOST: Final = "howto/run-a-controller.md"
_BACKUP: Final = "howto/backup.md"
_ONLINE: Final = ("Packages and user", "Code")
_OFFLINE: Final = (
    "Database",
    "Settings",
    "The first administrator",
    "Two processes",
    "The proxy",
)
_RELEASES: Final = ("/opt/holdline-server-0.2.0", "/opt/holdline-server-0.3.0")
_CALLER: Final = "/srv/guide_caller.py"
# What a caller may be told while processes are replaced: to make the same call again.
_REPEATED: Final = {
    "SERVER_STOPPING",
    "START_UNCONFIRMED",
    "The command has not ended, as far as the server knows.",
}
_PRIVATE_KEY: Final = "/var/lib/holdline-server/backup-private.pem"
_CONNECT_SECONDS: Final = 60.0
# The way from one release to the next and back may take longer than a session by default.
_LONG_SESSIONS: Final = """
from projects.models import Project
Project.objects.update(default_lifetime_seconds=3600, max_lifetime_seconds=3600)
"""
# What a reader writes for the names and the short command of the other two guides.
_WRITTEN: Final = {
    ".venv/bin/python manage.py": "holdline-manage",
    "https://holdline.example/": "https://holdline.example.com/",
    "PROJECT HOSTNAME": "trial web2",
    "enr_…": "$CODE",
    "sudo ": "",
}


def test_the_commands_of_the_guide_are_valid_and_what_they_name_is_there() -> None:
    script = "\n".join(text for _, text in blocks_of(_SERVER))
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    ours = set(
        re.findall(r"^(?:HOLDLINE_RELEASE=\S+ )?holdline-manage (\w+)", script, re.MULTILINE)
    )
    assert ours
    assert ours <= get_commands().keys()
    for name in re.findall(r"(?:^|\s)((?:deploy|bin)/[\w.-]+)", script):
        assert (PROJECT_ROOT / name).is_file()


@pytest.mark.timeout(7200)
def test_the_guides_lead_to_a_server_with_a_host_and_back_from_a_backup(is_long: bool) -> None:
    served = (*_ONLINE, *_OFFLINE, "See that it works", "Upgrade", "The way back")
    assert {heading for heading, _ in blocks_of(_SERVER)} == set(served)
    for guide, headings in (
        (_SERVER, served),
        (_HOST, ("One line",)),
        (_BACKUP, ("Back up", "Restore")),
    ):
        assert commands_of(guide, *headings)
    if is_long:
        with booted_root(Path("/var/tmp/holdline-guides")) as root:
            _install_the_server(root)
            _connect_a_host(root)
            _keep_a_session_over_restarts(root)
            _upgrade_and_go_back(root)
            _back_up_and_restore(root)
            _remove_the_host_twice(root)


def _install_the_server(root: BootedRoot) -> None:
    clone_release(_there(root, _RELEASES[0]))
    root.run("apt-get update --quiet", is_online=True)
    # Administrators may have a umask that closes what they make.
    root.run(f"umask 077\n{commands_of(_SERVER, *_ONLINE)}", is_online=True)
    told = root.run(f"umask 077\ncd {_RELEASES[0]}\n{commands_of(_SERVER, *_OFFLINE)}")
    assert "System check identified no issues" in told
    # In place of the DNS, and of an authority that everybody trusts. The authorities that this
    # machine trusts stay: its way to packages may need them.
    root.run(
        "echo 127.0.0.1 holdline.example.com >>/etc/hosts\n"
        "cp /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/known.crt\n"
        "cp /etc/haproxy/ca.pem /usr/local/share/ca-certificates/guide.crt\n"
        "update-ca-certificates"
    )
    _wait_for_servers(root)
    assert root.run(commands_of(_SERVER, "See that it works")).startswith('{"status": "ok"')
    root.run("holdline-manage create_api_token trial --name guide >/srv/token")
    shutil.copy(guide_caller.__file__, _there(root, _CALLER))


def _wait_for_servers(root: BootedRoot, *ports: int) -> None:
    for port in ports or (8001, 8002):
        root.run(f"curl -sf --retry 60 --retry-all-errors http://127.0.0.1:{port}/readyz")


def _connect_a_host(root: BootedRoot) -> None:
    make_code, line, _ = (text for heading, text in blocks_of(_HOST) if heading == "One line")
    told = root.run(f"umask 077\nCODE=$({_as_written(make_code)})\n{_as_written(line)}")
    assert "connected (wss://holdline.example.com/" in told


def _keep_a_session_over_restarts(root: BootedRoot) -> None:
    asking = 'read -p "Name: " n; read -s -p "Password: " p; echo; echo "$n has ${#p}"'
    session, *asked = _call(root, "start_interactive_command", {"command": asking})
    assert asked == ["awaiting_input", "Name: "]
    root.run("systemctl restart holdline-controller")
    wait_until(lambda: _is_connected(root), _CONNECT_SECONDS, "the host to connect again")
    typed = {"session_id": session, "input_text": "Ada\n"}
    assert _call(root, "send_command_input", typed)[1:] == ["awaiting_input", "Ada\nPassword: "]
    for port in (8001, 8002):
        root.run(f"systemctl restart holdline@{port}")
        _wait_for_servers(root, port)
    wait_until(lambda: _is_connected(root), _CONNECT_SECONDS, "the host to connect again")
    typed = {"session_id": session, "input_text": "four\n"}
    assert _call(root, "send_command_input", typed)[1:] == ["exited", "\nAda has 4\n"]


def _upgrade_and_go_back(root: BootedRoot) -> None:
    old, new = _RELEASES
    prepare, replace, make_daemon = (
        text for heading, text in blocks_of(_SERVER) if heading == "Upgrade"
    )
    make_next_release(_there(root, new))
    daemon = root.run("holdline-controller --version")
    root.run(f"holdline-manage shell -c {shlex.quote(_LONG_SESSIONS)}")
    session, *_ = _call(root, "start_interactive_command", {"command": "cat"})
    root.run(
        f"systemd-run --quiet --unit=load --property=StandardOutput=file:/srv/load.json "
        f"python3 {_CALLER} /srv/load.end"
    )
    _say(root, session, "before")
    root.run(f"umask 077\n{prepare}", is_online=True)
    assert _serving(root) == [old, old]
    root.run(replace)
    assert _serving(root) == [new, new]
    _say(root, session, "upgraded")
    root.run(make_daemon, is_online=True)
    root.run(_as_written(commands_of(_HOST, "Upgrade it")))
    assert root.run("holdline-controller --version") != daemon
    _say(root, session, "with a new daemon")
    root.run(commands_of(_SERVER, "The way back"))
    assert _serving(root) == [old, old]
    _say(root, session, "back")
    _end_load(root)
    ended = {"session_id": session, "terminate": True}
    assert _call(root, "send_command_input", ended)[1] == "exited"


def _end_load(root: BootedRoot) -> None:
    """Every call that was made ran its command once, however often it was repeated."""
    root.run("touch /srv/load.end")
    wait_until(lambda: not _is_active(root, "load"), _CONNECT_SECONDS, "the last calls to end")
    told = json.loads(_there(root, "/srv/load.json").read_text())
    assert told["failed"] == []
    assert told["repeated"].keys() <= _REPEATED
    assert sorted(root.run("cat ~holdline-run/calls").split()) == sorted(told["marks"])


def _back_up_and_restore(root: BootedRoot) -> None:
    command, make_keys, units, _ = (
        text for place, text in blocks_of(_BACKUP) if place == "Back up"
    )
    root.run(
        f"cd /srv\n{make_keys}\n"
        "install -m 0640 -g holdline-server backup.pem /etc/holdline-server/backup.pem\n"
        f"install -m 0400 -o holdline-server backup-private.pem {_PRIVATE_KEY}"
    )
    root.run(_as_written(command))
    for unit in re.split(r"^(?=# /etc/)", units, flags=re.MULTILINE)[1:]:
        (root.path / unit.split()[1].lstrip("/")).write_text(unit)
    root.run("systemctl daemon-reload\nsystemctl enable --now holdline-backup.timer")
    root.run("systemctl start holdline-backup.service")
    newest = root.run("ls /var/backups/holdline").split()[-1]
    assert len(root.run("ls /var/backups/holdline").split()) == 2
    restore, confirm = _blocks("Restore")
    log = "/var/lib/holdline-server/server.log"
    root.run("systemctl stop holdline@8001 holdline@8002")
    root.run(f"journalctl --unit 'holdline@*' --output cat >{log}")
    restore = re.sub(r"holdline-\d+T\d+Z", newest, _as_written(restore))
    restore = restore.replace("backup-private.pem", _PRIVATE_KEY)
    # The tables are those of the next release since the upgrade, and the way back kept them.
    told = root.run(f"! {restore}")
    assert "has tables of a release that is newer than this one" in told
    root.run(f"HOLDLINE_RELEASE=0.3.0 {restore}")
    root.run("systemctl start holdline@8001 holdline@8002")
    _wait_for_servers(root)
    root.run(_as_written(confirm).replace("/var/log/holdline/server.log", log))
    root.run("holdline-manage verify_audit")
    wait_until(lambda: _is_connected(root), _CONNECT_SECONDS, "the host to connect again")
    ended = _call(root, "start_interactive_command", {"command": "echo restored"})
    assert ended[1:] == ["exited", "restored\n"]


def _remove_the_host_twice(root: BootedRoot) -> None:
    for _ in range(2):
        assert "the service is removed" in root.run("holdline-controller service uninstall")
    assert "not-found" in root.run("systemctl show -p LoadState holdline-controller")


def _there(root: BootedRoot, path: str) -> Path:
    return root.path / path.lstrip("/")


def _say(root: BootedRoot, session: str, text: str) -> None:
    typed = {"session_id": session, "input_text": f"{text}\n", "wait_for": f"{text}\n{text}"}
    assert _call(root, "send_command_input", typed)[1:] == ["awaiting_input", f"{text}\n{text}\n"]


def _serving(root: BootedRoot) -> list[str]:
    """The directory of the release whose Python each server process runs."""
    asked = "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID holdline@{})/cmdline | head -1"
    interpreters = [root.run(asked.format(port)).strip() for port in (8001, 8002)]
    return [name.removesuffix("/.venv/bin/python") for name in interpreters]


def _is_active(root: BootedRoot, unit: str) -> bool:
    return root.run(f"systemctl is-active {unit} || true").strip() == "active"


def _blocks(heading: str) -> list[str]:
    return [text for place, text in blocks_of(_BACKUP) if place == heading]


def _is_connected(root: BootedRoot) -> bool:
    with suppress(AssertionError):
        return root.run("holdline-controller service status").startswith("connected")
    return False


def _call(root: BootedRoot, tool: str, arguments: dict[str, Any]) -> list[str]:
    """Call a tool there; returns the session's id, its state and its output."""
    told = json.loads(root.run(shlex.join(["python3", _CALLER, tool, json.dumps(arguments)])))
    return [told["session_id"], told["state"], told["output"].replace("\r\n", "\n")]


def _as_written(block: str) -> str:
    block = textwrap.dedent(block)
    for name, written in _WRITTEN.items():
        block = block.replace(name, written)
    return block
