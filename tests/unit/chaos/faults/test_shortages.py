"""A shortage is made on what belongs to the run, and never on the machine."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.faults.harm import Harm
from chaos.faults.kinds import KINDS
from chaos.faults.schedule import Fault
from chaos.faults.shortages import disk_full
from chaos.history import History


async def test_a_disk_that_others_use_is_not_filled(tmp_path: Path) -> None:
    product: Any = SimpleNamespace(state=tmp_path)
    fault = Fault(number=0, kind="daemon_disk_full", at=0.0, seconds=0.0, choice=0)
    history = History(tmp_path)
    with pytest.raises(RuntimeError, match="no disk of this run"):
        await disk_full("state")(Harm(product, history), fault)
    history.close()
    assert not (tmp_path / ".filler").exists()


def test_full_disks_need_disks_of_the_run() -> None:
    assert {kind.needs for name, kind in KINDS.items() if name.endswith("disk_full")} == {"tmpfs"}
