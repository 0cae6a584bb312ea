"""``manage.py agent_worker``: carry out runs of models in a process of its own.

On SIGTERM or Ctrl-C, other workers can take over its runs at once. HOLDLINE_AGENT_WORKER=false
leaves all runs to such processes.
"""

import asyncio
import signal
from typing import Any

from agent import worker
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = "Carry out agent runs until SIGTERM or Ctrl-C"

    def handle(self, *_args: Any, **_options: Any) -> None:
        asyncio.run(_work())


async def _work() -> None:
    task = asyncio.create_task(worker.work())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
