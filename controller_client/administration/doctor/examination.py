"""``holdline-controller doctor``: every check, one line each, with the remedy."""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from controller_client.administration.doctor import host
from controller_client.administration.doctor.finding import Finding
from controller_client.administration.doctor.logs import examine_logs
from controller_client.administration.doctor.network import examine_network
from controller_client.administration.doctor.users import examine_users
from controller_client.administration.installation import one_line, say
from controller_client.administration.local_sessions import become_owner, state_dir_of
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import find_file
from controller_client.config.server_address import check_server_url, check_way
from controller_client.session_files.daemon_status import read_status

_SIGNS: Final = {"ok": "ok     ", "note": "note   ", "warning": "WARNING", "problem": "PROBLEM"}


def examine(options: argparse.Namespace) -> int:
    """Tell everything that is found; return 1 if something keeps this host from working."""
    state_dir = state_dir_of(options)
    # What cannot be looked at is a finding of the check of the state directory.
    with suppress(ConfigurationError):
        become_owner(state_dir)
    found = []
    for finding in _findings(options, state_dir):
        found.append(finding)
        if not options.json:
            _tell(finding)
    if options.json:
        say(json.dumps([asdict(finding) for finding in found]))
    return int(any(finding.level == "problem" for finding in found))


def _tell(finding: Finding) -> None:
    say(f"{_SIGNS[finding.level]}  {finding.check:<13} {one_line(finding.text)}")
    if finding.remedy:
        say(f"{'':24}-> {one_line(finding.remedy)}")


def _findings(options: argparse.Namespace, state_dir: Path) -> Iterator[Finding]:
    yield host.check_python()
    yield _configuration(options)
    yield host.check_state_dir(state_dir)
    yield host.check_credential(state_dir)
    yield host.check_stop(state_dir)
    if getattr(options, "problem", None) is None:
        yield from _network(options)
    daemon = None
    try:
        daemon = read_status(state_dir)
        yield host.check_daemon(daemon)
    except OSError as error:
        text = f"not known, because {state_dir} cannot be looked at: {error.strerror}"
        yield Finding("daemon", "warning", text, host.AS_OWNER)
    yield host.check_control_group(daemon)
    yield host.check_evidence()
    yield from examine_users(state_dir, getattr(options, "policy", None), daemon)
    yield from examine_logs(options.log_root or (), options.session_logs)
    yield host.check_disk(state_dir)


def _configuration(options: argparse.Namespace) -> Finding:
    problem = getattr(options, "problem", None)
    if problem is not None:
        return Finding("configuration", "problem", problem, "correct the file")
    file = find_file(options.config)
    if file is None:
        return Finding(
            "configuration",
            "problem",
            "there is no controller.toml",
            "holdline-controller service install --server https://HOST",
        )
    return Finding("configuration", "ok", f"{file} can be used")


def _network(options: argparse.Namespace) -> Iterator[Finding]:
    server = getattr(options, "server", None)
    if server is None:
        yield Finding("server", "problem", "no server is named", "write server into the file")
        return
    try:
        url, way = check_server_url(server), check_way(options.ca_file, options.proxy)
    except ConfigurationError as error:
        yield Finding("server", "problem", str(error), "correct the configuration")
        return
    yield from examine_network(url, way)
