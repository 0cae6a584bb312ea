"""Second stage: set up, start, demonstrate, stay up until Ctrl-C, and leave no process behind."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quickstart import clients, transcript
from quickstart.console import Console
from quickstart.errors import DemonstrationFailed, QuickstartError
from quickstart.leftovers import end_leftovers
from quickstart.options import Options, parse
from quickstart.stack import Stack

_ONLINE_SECONDS = 30.0
_FAREWELL_SECONDS = 10.0


def main(arguments: Sequence[str]) -> int:
    """0, or 1 with a message."""
    console = Console()
    try:
        return asyncio.run(_main(parse(arguments, os.environ), console))
    except QuickstartError as error:
        console.line(f"error: {error}")
        if error.hint:
            console.line(f"       {error.hint}")
    except TimeoutError:
        console.line("error: the server did not answer in time")
    except KeyboardInterrupt:
        console.line("stopped")
    return 1


async def _main(options: Options, console: Console) -> int:
    stopping = _stop_on_signals()
    stack = Stack(options)
    stack.claim()
    work = asyncio.ensure_future(_bring_up(stack, console))
    try:
        if not await _finishes(work, stopping):
            console.line("stopped")
            return 1
        token = work.result()
        if not options.once:
            console.line("Up. Ctrl-C stops everything.")
            keeping = asyncio.ensure_future(stack.keep_up(console))
            if await _finishes(keeping, stopping):
                keeping.result()
            await _say_goodbye(stack, token, console)
        return 0
    finally:
        await stack.stop()
        end_leftovers(stack.state_dir)


async def _bring_up(stack: Stack, console: Console) -> str:
    """Everything up to the demonstration; the API token."""
    console.step(f"Setting up {stack.data_dir}")
    made = await stack.set_up()
    token = _read_token(made["token_file"])
    console.step(f"Starting the server on 127.0.0.1:{stack.options.port} and a local controller")
    await stack.start_server()
    await stack.start_controller(made["credential_file"])
    # Takes a second, which the server and the controller need as well; and Ctrl-C is heard by now.
    from quickstart import mcp_calls

    async with mcp_calls.connected(made["mcp_url"], token) as client:
        await mcp_calls.wait_until_online(client, _ONLINE_SECONDS)
        console.step("One interactive session, through the official MCP client")
        turns = await mcp_calls.demonstrate(client)
    for line in transcript.render(turns):
        console.line(line)
    if found := transcript.problems(turns, mcp_calls.hidden_input()):
        raise DemonstrationFailed(found)
    directory = clients.write(stack.data_dir, made["mcp_url"], token, made["token_file"])
    _announce(made, directory, console)
    return token


def _read_token(path: str) -> str:
    return Path(path).read_text().strip()


def _announce(made: dict[str, Any], directory: Path, console: Console) -> None:
    console.line()
    console.line(f"MCP endpoint    {made['mcp_url']}")
    console.line(f"Client config   {made['client_file']}   (holds the token; give it to your MCP client)")
    console.line(
        f"                for Claude Desktop, VS Code and Cursor: {directory}   (docs/howto/connect-a-client.md says where they go)"
    )
    for name, command in clients.command_lines(made["mcp_url"], made["token_file"]).items():
        console.line(f"{name:<15} {command}")
    console.line(f"Admin           {made['admin_url']}   user: {made['admin_name']}")
    if made["admin_password"]:
        console.line(f"                one-time password: {made['admin_password']}   (shown now only; change it after you log in)")
    else:
        console.line("                password: the one you use already; forgotten? .venv/bin/python manage.py changepassword admin")
    if os.geteuid() == 0:
        console.line("Note            this runs as root, and so does every program a caller starts here")
    console.line()


async def _say_goodbye(stack: Stack, token: str, console: Console) -> None:
    """End the sessions callers left running, while there is a server to record how they ended."""
    from quickstart import mcp_calls

    console.line("Stopping.")
    if stack.has_server:
        with suppress(Exception):
            async with asyncio.timeout(_FAREWELL_SECONDS), mcp_calls.connected(f"{stack.options.base_url}/mcp", token) as client:
                await mcp_calls.terminate_sessions(client)


def _stop_on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def _finishes(work: "asyncio.Future[Any]", stopping: asyncio.Event) -> bool:
    """Wait for the work or the order to stop, whichever comes first; whether it was the work. Otherwise the work is cancelled."""
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
