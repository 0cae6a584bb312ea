"""The means by which faults are done. One that is missing fails a run; nothing is left out."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from chaos.faults.kinds import KINDS
from chaos.faults.schedule import Fault
from chaos.plant import groups


class MissingMeansError(Exception):
    """A fault of the schedule cannot be done on this machine."""


def needed(faults: Iterable[Fault]) -> set[str]:
    """The means that these faults need."""
    return {need for fault in faults if (need := KINDS[fault.kind].needs)}


def require(names: Iterable[str]) -> None:
    """Raise MissingMeansError unless this machine has all of these means."""
    missing = sorted(name for name in names if not _is_there(name))
    if missing:
        raise MissingMeansError(
            f"this machine lacks {', '.join(missing)}: see CONTRIBUTING.md, or choose a --profile"
        )


def _is_there(name: str) -> bool:
    if name == "tmpfs":
        return os.geteuid() == 0 and shutil.which("mount") is not None
    if name == "control groups":
        return groups.is_possible()
    if name == "postgresql":
        return bool(list(Path("/usr/lib/postgresql").glob("*/bin/postgres")))
    return shutil.which({"redis": "redis-server"}.get(name, name)) is not None
