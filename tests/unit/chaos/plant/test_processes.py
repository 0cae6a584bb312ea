"""A process tells what it has said since it was last started."""

import os
from pathlib import Path

from chaos.plant.processes import Command, Process
from chaos.plant.product import until


async def test_what_a_process_said_before_its_last_start_is_not_told(tmp_path: Path) -> None:
    words = iter(["first", "second"])
    process = Process(
        "echo",
        tmp_path / "log",
        lambda: Command(["echo", next(words)], dict(os.environ), tmp_path),
    )
    for said in ("first\n", "second\n"):
        process.start()
        await until(lambda: process.pid is None, 60.0, "the end of echo")
        assert process.said() == said
