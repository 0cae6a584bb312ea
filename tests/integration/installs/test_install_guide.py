"""The commands of the guides for administrators are valid, and lead to a server and a host.

The long form carries them out, in the order of the guides, in a Debian with a systemd of its own.
"""

import json
import re
import shlex
import subprocess
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from django.core.management import get_commands

from tests.support.installs.booted_root import BootedRoot, booted_root
from tests.support.installs.guides import blocks_of, commands_of
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
_CODE: Final = "/opt/holdline-server"
_PRIVATE_KEY: Final = "/var/lib/holdline-server/backup-private.pem"
_CONNECT_SECONDS: Final = 60.0
# What a reader writes for the names and the short command of the other two guides.
_WRITTEN: Final = {
    ".venv/bin/python manage.py": "holdline-manage",
    "https://holdline.example/": "https://holdline.example.com/",
    "PROJECT HOSTNAME": "trial web2",
    "enr_…": "$CODE",
    "sudo ": "",
}
# One call of a tool, as any MCP client makes it.
_CALL: Final = """
import json, pathlib, sys, urllib.request
tool, arguments = sys.argv[1], json.loads(sys.argv[2])
meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "guide", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}}
headers = {"authorization": "Bearer " + pathlib.Path("/srv/token").read_text().strip(),
           "content-type": "application/json", "accept": "application/json, text/event-stream",
           "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
request = urllib.request.Request(
    "https://holdline.example.com/mcp", json.dumps(body).encode(), headers)
result = json.loads(urllib.request.urlopen(request, timeout=60).read())["result"]
content = result["structuredContent"]
print(json.dumps([content["session_id"], content["state"], content["output"]]))
"""


def test_the_commands_of_the_guide_are_valid_and_what_they_name_is_there() -> None:
    script = "\n".join(text for _, text in blocks_of(_SERVER))
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    ours = set(re.findall(r"^holdline-manage (\w+)", script, re.MULTILINE))
    assert ours
    assert ours <= get_commands().keys()
    for name in re.findall(r"(?:^|\s)((?:deploy|bin)/[\w.-]+)", script):
        assert (PROJECT_ROOT / name).is_file()


@pytest.mark.timeout(7200)
def test_the_guides_lead_to_a_server_with_a_host_and_back_from_a_backup(is_long: bool) -> None:
    for guide, headings in (
        (_SERVER, (*_ONLINE, *_OFFLINE, "See that it works")),
        (_HOST, ("One line",)),
        (_BACKUP, ("Back up", "Restore")),
    ):
        assert commands_of(guide, *headings)
    if is_long:
        with booted_root(Path("/var/tmp/holdline-guides")) as root:
            _install_the_server(root)
            _connect_a_host(root)
            _keep_a_session_over_restarts(root)
            _back_up_and_restore(root)
            _remove_the_host_twice(root)


def _install_the_server(root: BootedRoot) -> None:
    code = root.path / _CODE.lstrip("/")
    subprocess.run(["git", "clone", "--quiet", str(PROJECT_ROOT), str(code)], check=True)
    root.run("apt-get update --quiet", is_online=True)
    root.run(commands_of(_SERVER, *_ONLINE), is_online=True)
    told = root.run(f"cd {_CODE}\n{commands_of(_SERVER, *_OFFLINE)}")
    assert "System check identified no issues" in told
    # In place of the DNS, and of an authority that everybody trusts.
    root.run(
        "echo 127.0.0.1 holdline.example.com >>/etc/hosts\n"
        "cp /etc/haproxy/ca.pem /usr/local/share/ca-certificates/guide.crt\n"
        "update-ca-certificates"
    )
    _wait_for_servers(root)
    assert root.run(commands_of(_SERVER, "See that it works")).startswith('{"status": "ok"')
    root.run("holdline-manage create_api_token trial --name guide >/srv/token")


def _wait_for_servers(root: BootedRoot, *ports: int) -> None:
    for port in ports or (8001, 8002):
        root.run(f"curl -sf --retry 60 --retry-all-errors http://127.0.0.1:{port}/readyz")


def _connect_a_host(root: BootedRoot) -> None:
    make_code, line, _ = (text for heading, text in blocks_of(_HOST) if heading == "One line")
    told = root.run(f"CODE=$({_as_written(make_code)})\n{_as_written(line)}")
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
    root.run(restore.replace("backup-private.pem", _PRIVATE_KEY))
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


def _blocks(heading: str) -> list[str]:
    return [text for place, text in blocks_of(_BACKUP) if place == heading]


def _is_connected(root: BootedRoot) -> bool:
    with suppress(AssertionError):
        return root.run("holdline-controller service status").startswith("connected")
    return False


def _call(root: BootedRoot, tool: str, arguments: dict[str, str]) -> list[str]:
    """Call a tool there; returns the session's id, its state and its output."""
    (root.path / "srv/call.py").write_text(_CALL)
    told = root.run(shlex.join(["python3", "/srv/call.py", tool, json.dumps(arguments)]))
    session, state, output = json.loads(told)
    return [session, state, output.replace("\r\n", "\n")]


def _as_written(block: str) -> str:
    block = textwrap.dedent(block)
    for name, written in _WRITTEN.items():
        block = block.replace(name, written)
    return block
