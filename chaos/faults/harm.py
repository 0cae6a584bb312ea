"""The things that faults harm, and the record of what they do."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from chaos.faults.schedule import Fault
from chaos.history import History
from chaos.plant.processes import Process
from chaos.plant.product import Product


class Harm:
    """The things that a fault may touch, and the place where it is written down."""

    def __init__(self, product: Product, history: History) -> None:
        self.product = product
        self.history = history

    def server(self, fault: Fault) -> Process:
        """The server process that the fault is about."""
        return self.product.servers[fault.choice % len(self.product.servers)]

    def note(self, fault: Fault, state: str, **what: object) -> None:
        """Write down what became of a fault."""
        self.history.note(
            "fault", number=fault.number, fault=fault.kind, state=state, lasts=fault.seconds, **what
        )

    @asynccontextmanager
    async def lasting(self, fault: Fault, **what: object) -> AsyncIterator[None]:
        """The time of a fault: it is done and undone inside the block."""
        self.note(fault, "begin", **what)
        try:
            yield
        finally:
            self.note(fault, "end")

    async def ended(self, fault: Fault, process: Process, number: signal.Signals) -> None:
        """End a process, and start it again after the time of the fault."""
        async with self.lasting(fault, process=process.name):
            await process.end(number)
            await asyncio.sleep(fault.seconds)
            process.start()
        await self.start(fault, process)

    async def start(self, fault: Fault, process: Process) -> None:
        """Start a process unless it runs, and write down how long it took until it was ready."""
        ready = await self.product.ready(process)
        self.note(fault, "ready", process=process.name, seconds=round(ready, 2))


Act = Callable[[Harm, Fault], Awaitable[None]]
