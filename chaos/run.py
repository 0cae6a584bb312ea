"""One run: start the product, load it, do the faults, look what is left, and judge."""

import asyncio
import json
import random
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from chaos.browser.pages import Browser, People
from chaos.clients.caller import Caller, GaveUpError
from chaos.clients.conversation import Place
from chaos.clients.load import load
from chaos.faults.acts import carry_out
from chaos.faults.harm import Harm
from chaos.faults.kinds import WITHOUT_PEOPLE
from chaos.faults.means import needed, require
from chaos.history import History
from chaos.judge.record import Record, Violation
from chaos.judge.verdict import judged
from chaos.plant import processes
from chaos.plant.product import PROJECT, ROOT, NotReadyError, Product, until
from chaos.recipe import Recipe

_SAMPLE_SECONDS: Final = 1.0
_SUPERVISE_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Result:
    """The outcome of a run, with its record."""

    recipe: Recipe
    directory: Path
    record: Record
    violations: list[Violation]


async def run(recipe: Recipe, tree: Path = ROOT) -> Result:
    """Carry a recipe out against the product of ``tree``, and judge what happened."""
    directory = Path(tempfile.mkdtemp(prefix="holdline-chaos-"))
    directory.chmod(0o711)
    recipe.write(directory)
    history = History(directory)
    history.note("run", storage=recipe.storage, seed=recipe.seed, seconds=recipe.seconds)
    try:
        async with _running(directory, history, recipe, tree) as product:
            await _loaded(product, history, recipe)
            if not _has_people(recipe):
                await _forgotten_ended(product)
            await _left_behind(product, history)
            await asyncio.gather(_verified(product, history), _asked(product, history))
    finally:
        history.close()
    record, found = judged(directory, beyond=recipe.beyond)
    return Result(recipe, directory, record, found)


def remove(result: Result) -> None:
    """Delete what a run left on the disk."""
    shutil.rmtree(result.directory, ignore_errors=True)


@asynccontextmanager
async def _running(
    directory: Path, history: History, recipe: Recipe, tree: Path
) -> AsyncIterator[Product]:
    needs = needed(recipe.faults)
    require(needs | ({"postgresql", "redis"} if recipe.is_scaled_out else set()))
    product = Product(directory, is_scaled_out=recipe.is_scaled_out, tree=tree)
    try:
        await _prepared(product, recipe, needs)
        for name, seconds in (await product.start()).items():
            history.note("started", process=name, seconds=round(seconds, 2))
        yield product
    finally:
        for name, seconds in (await product.stop()).items():
            history.note("stopped", process=name, seconds=round(seconds, 2))
        await _ended(product)
        product.unmount_disks()


async def _prepared(product: Product, recipe: Recipe, needs: set[str]) -> None:
    """Give the product everything that it has to have before it is started."""
    product.make_directories()
    if "tmpfs" in needs:
        product.mount_disks()
    if "git" in needs:
        await product.check_out(recipe.older)
    await product.start_backends()
    await product.provision()
    if "cc" in needs:
        await product.set_clocks()


async def _ended(product: Product) -> None:
    """End what a broken run left, so that nothing of it stays on this machine."""
    left = await asyncio.to_thread(lambda: [*product.holders(), *product.programs_running()])
    processes.signal_all(left, signal.SIGKILL)


async def _loaded(product: Product, history: History, recipe: Recipe) -> None:
    """The load and the faults side by side, for the time of the recipe."""
    is_over = asyncio.Event()
    stored = product.directory / "stored"
    stored.mkdir()
    operator = Browser(product.endpoint.port)
    await operator.sign_in(*product.operator)
    people = People(operator, product.held_token, product.manage)
    place = Place(
        product.endpoint, history, product.programs, stored, product.logs, is_over, people
    )
    sampling = asyncio.create_task(_sample(product, history))
    supervising = asyncio.create_task(_supervise(product, history))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                load(place, recipe.seed, recipe.callers, has_people=_has_people(recipe))
            )
            began = time.monotonic()
            await carry_out(Harm(product, history), recipe.faults)
            await asyncio.sleep(max(0.0, began + recipe.seconds - time.monotonic()))
            history.note("over")
            is_over.set()
    finally:
        sampling.cancel()
        supervising.cancel()


def _has_people(recipe: Recipe) -> bool:
    return not any(fault.kind in WITHOUT_PEOPLE for fault in recipe.faults)


async def _supervise(product: Product, history: History) -> None:
    """Start a server again that has ended by itself, as whoever runs servers does."""
    while True:
        for server in product.servers:
            if server.has_to_run and server.pid is None:
                history.note("exited", process=server.name, code=server.exit_code)
                server.start()
        await asyncio.sleep(_SUPERVISE_SECONDS)


async def _sample(product: Product, history: History) -> None:
    """Write down again and again what each process has in use."""
    while True:
        for process in (product.daemon, *product.servers):
            pid = process.pid
            if pid is not None:
                history.note(
                    "sample",
                    process=process.name,
                    pid=pid,
                    bytes=processes.resident_bytes(pid),
                    descriptors=processes.descriptors_of(pid),
                    threads=processes.threads_of(pid),
                    waited=round(processes.waited_seconds(pid), 3),
                )
        history.note("database", bytes=await asyncio.to_thread(product.database_bytes))
        await asyncio.sleep(_SAMPLE_SECONDS)


async def _forgotten_ended(product: Product) -> None:
    """End what a restore has left without a caller: starts that nobody knows the outcome of.

    The hosts still have them, and the server has adopted them.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        # The command fails if an end takes a moment. Sessions that stay are found afterwards.
        with suppress(RuntimeError):
            await product.manage("end_sessions", PROJECT)
            return


def _finds_nothing(look: Callable[[], object]) -> bool:
    return not look()


async def _left_behind(product: Product, history: History) -> None:
    """Look for processes, directories and sessions that nobody should find after the load."""
    sessions = product.state / "sessions"
    looks = {
        "holders": product.holders,
        "programs": product.programs_running,
        "session directories": lambda: sorted(path.name for path in sessions.glob("*")),
    }
    for what, look in looks.items():
        try:
            await until(partial(_finds_nothing, look), _SETTLE_SECONDS, what)
        except NotReadyError:
            found = await asyncio.to_thread(look)
            history.note("left_behind", what=what, found=found)
    active = await _active(product, history)
    if active:
        history.note("left_behind", what="active sessions", found=active)


async def _active(product: Product, history: History) -> object:
    """The sessions that are still active. A list that is refused is no empty one."""
    caller = Caller(product.endpoint, history, "", random.Random())
    try:
        return (await caller.read("list_sessions", active_only=True)).body["sessions"]
    except GaveUpError:
        return []


async def _verified(product: Product, history: History) -> None:
    """Have the audit log verified; a broken one fails the run."""
    try:
        history.note("audit", told=await product.manage("verify_audit"))
    except RuntimeError as error:
        is_broken = "BROKEN" in str(error)
        what = "a broken audit log" if is_broken else "an audit log that nobody could verify"
        history.note("left_behind", what=what, found=str(error))


async def _asked(product: Product, history: History) -> None:
    """Look for questions that still wait for a person, although nobody waits for the answer."""
    found = json.loads(await product.manage("answer_approval", "--json"))
    if found:
        history.note("left_behind", what="open questions", found=found)
