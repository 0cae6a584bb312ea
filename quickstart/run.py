"""The second stage of the quickstart: set up, start, demonstrate, and stay up until Ctrl-C.

Ctrl-C ends the server, the local controller and every program that it runs.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quickstart import clients
from quickstart.announcement import Place, announce, manage_command
from quickstart.console import Console
from quickstart.errors import QuickstartError, SystemRefused
from quickstart.options import Options, parse
from quickstart.server.leftovers import end_leftovers, wait_until_reported
from quickstart.server.refusals import tell_refusals
from quickstart.server.stack import Stack

_ONLINE_SECONDS = 30.0


def main(arguments: Sequence[str]) -> int:
    """Run the second stage; returns the exit code, after a message if it is 1."""
    console = Console()
    try:
        return asyncio.run(_main(parse(arguments, os.environ), console))
    except QuickstartError as error:
        console.error(error)
    except TimeoutError:
        console.line("error: the server did not answer in time")
    except OSError as error:
        console.error(SystemRefused(error))
    except KeyboardInterrupt:
        console.line("stopped")
    return 1


async def _main(options: Options, console: Console) -> int:
    stopping = _stop_on_signals()
    stack = Stack(options)
    stack.claim(console)
    work = asyncio.ensure_future(_bring_up(stack, console))
    try:
        if not await _finishes(work, stopping):
            console.line("stopped")
            return 1
        place, has_failed = work.result()
        if stack.options.once:
            await asyncio.to_thread(wait_until_reported, stack.state_dir)
            return int(has_failed)
        console.line(
            "Up. Ctrl-C ends the server, the local controller and the programs it runs; sessions "
            "on other hosts go on."
        )
        keeping = asyncio.ensure_future(stack.keep_up(console))
        telling = asyncio.ensure_future(
            tell_refusals(stack, place.project, place.controller, console)
        )
        ended = await _finishes(keeping, stopping)
        telling.cancel()
        await asyncio.wait({telling})
        if ended:
            keeping.result()
        console.line("Stopping.")
        await stack.end_sessions(place.project, place.controller)
        await stack.stop()
        end_leftovers(stack.state_dir)
        return 0
    finally:
        # After an error, sessions live on, and the next start finds them.
        await stack.stop()


async def _bring_up(stack: Stack, console: Console) -> tuple[Place, bool]:
    """Start all and demonstrate; returns the addresses, and True if the demonstration failed."""
    console.step(f"Setting up {stack.data_dir}")
    place = Place(**await stack.set_up())
    token = _read(place.token_file)
    console.step(f"Starting the server on 127.0.0.1:{stack.options.port} and a local controller")
    await stack.start_server()
    await stack.start_controller(place.credential_file)
    has_failed = place.is_token_suspended
    if has_failed:
        console.line(
            "The database was restored, and all tokens are refused until that is confirmed. Look "
            f"at what it brought back, and confirm it: {manage_command(stack)} confirm_restore"
        )
    try:
        has_failed = has_failed or await _look_around(stack, place, token, console)
    except QuickstartError as error:
        # The server stays up, so that a person can look for the cause in its log.
        console.line(f"The server could not be asked: {error}")
        has_failed = True
    announce(
        place, clients.write(stack.data_dir, place.mcp_url, token, place.token_file), stack, console
    )
    if not stack.options.once:
        await stack.make_bundle()
    return place, has_failed


def _read(path: str) -> str:
    return Path(path).read_text().strip()


async def _look_around(stack: Stack, place: Place, token: str, console: Console) -> bool:
    """List sessions of before, and demonstrate unless that was shown; True if something failed."""
    # These imports take a second, in which the server and the controller start.
    from quickstart.demonstration import mcp_calls
    from quickstart.demonstration import session as demonstration

    async with mcp_calls.connected(place.mcp_url, token) as client:
        if not await mcp_calls.is_online(client, place.controller, _ONLINE_SECONDS):
            console.line(
                f"The local controller did not come online within {_ONLINE_SECONDS:.0f} s (log: "
                f"{stack.controller_log})"
            )
            return True
        for session in await mcp_calls.active_sessions(client):
            console.line(f"    goes on: {session['command']} (session {session['session_id']})")
        shown = stack.data_dir / "demonstrated"
        if shown.exists() and not stack.options.once:
            return False
        console.step("One interactive session, through the official MCP client")
        outcome = await demonstration.show(client, place.controller)
        for line in outcome.lines:
            console.line(line)
        if outcome.session_id:
            page = f"{place.console_url}sessions/{outcome.session_id}/"
            console.line(f"    See it in the console: {page}")
        if outcome.is_shown:
            shown.touch()
        return outcome.has_failed


def _stop_on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def _finishes(work: "asyncio.Future[Any]", stopping: asyncio.Event) -> bool:
    """Wait for the work or the signal to stop; True if the work ended first, else cancel it."""
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if work.done():
        return True
    work.cancel()
    await asyncio.wait({work})
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
