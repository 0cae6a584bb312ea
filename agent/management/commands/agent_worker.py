"""``manage.py agent_worker``: carries out runs in a process of its own."""

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from agent import worker


class Command(BaseCommand):
    """Until SIGTERM or Ctrl-C; runs in hand are given back then. The server may leave runs to it: HOLDLINE_AGENT_WORKER=false."""

    help = "Carry out agent runs"

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Works until told to stop."""
        asyncio.run(_work())


async def _work() -> None:
    task = asyncio.create_task(worker.work())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, task.cancel)
    await asyncio.wait([task])
