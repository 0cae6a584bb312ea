"""The watch on the local controller's connection, which an administrator may end for good."""

import asyncio
from contextlib import suppress
from typing import NoReturn

from quickstart.console import Console
from quickstart.errors import QuickstartError
from quickstart.server.stack import Stack

_LOOK_AGAIN_SECONDS = 1.0


async def tell_refusals(stack: Stack, project: str, controller: str, console: Console) -> NoReturn:
    """Say once for each refusal what happened and what to do. The server stays up.

    ``project`` and ``controller`` are the names of the local controller's host.
    """
    is_told = False
    while True:
        state = stack.connection_state()
        if state == "connected":
            is_told = False
        elif state == "refused" and not is_told:
            is_told = True
            console.line(
                _revoked(controller)
                if await _is_revoked(stack, project, controller)
                else _refused(stack)
            )
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def _is_revoked(stack: Stack, project: str, controller: str) -> bool:
    # A database that cannot be asked now leaves the reason open, and ends no watch.
    with suppress(QuickstartError, OSError, ValueError):
        return await stack.is_revoked(project, controller)
    return False


def _revoked(controller: str) -> str:
    return (
        f"The host {controller} was revoked: the server goes on, and refuses the controller of "
        "this machine. Programs that run here go on until Ctrl-C. To make this machine a host "
        "again, stop with Ctrl-C and run bin/quickstart again."
    )


def _refused(stack: Stack) -> str:
    return (
        f"The server refuses the local controller; its log says why: {stack.controller_log}. If "
        "its credential was revoked or has expired, stop with Ctrl-C and run bin/quickstart again, "
        "which makes another."
    )
