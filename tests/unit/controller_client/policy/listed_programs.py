"""A policy that lists some of the programs of a search path."""

from pathlib import Path
from typing import Any

from controller_client.command_policy.allowlist import Allowlist
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import HostPolicy


def policy_of(programs: Path, *allowed: str, **more: Any) -> HostPolicy:
    return HostPolicy(
        [PolicyFile(allowlist=Allowlist.parse(allowed), search_path=str(programs), **more)]
    )
