"""Starts the ASGI server that HOLDLINE_SERVER names: ``python -m config.server``.

Daphne and uvicorn serve the same application, with the same bounds (``config.edge``). Whoever
starts the server through this module changes one word to change the server.
"""

import argparse
import os
from collections.abc import Sequence

from controller_client.protocol.limits import HEARTBEAT_SECONDS
from projects.conf import conf

APPLICATION = "config.asgi:application"
# uvicorn waits this long for its connections when the graceful stop has let it stop.
_UVICORN_STOP_SECONDS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, in this process."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    parser = argparse.ArgumentParser(prog="python -m config.server", description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1", help="the address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="the port (default: %(default)s)")
    parser.add_argument("application", nargs="?", default=APPLICATION)
    options = parser.parse_args(arguments)
    serve = {"daphne": _daphne, "uvicorn": _uvicorn}[conf.server]
    serve(options.bind, options.port, options.application)


def _daphne(bind: str, port: int, application: str) -> None:
    from daphne.cli import CommandLineInterface

    CommandLineInterface().run(["-b", bind, "-p", str(port), "-v", "0", application])


def _uvicorn(bind: str, port: int, application: str) -> None:
    import uvicorn

    uvicorn.run(
        application,
        host=bind,
        port=port,
        # uvloop reads 256 KiB ahead of each request, where nothing counts them.
        loop="asyncio",
        http="h11",
        # The WebSocket implementation with back-pressure.
        ws="websockets-sansio",
        ws_ping_interval=HEARTBEAT_SECONDS,
        ws_ping_timeout=HEARTBEAT_SECONDS,
        lifespan="off",
        # The application reads what proxies say itself, and only from those that it knows.
        proxy_headers=False,
        timeout_keep_alive=int(conf.idle_seconds),
        timeout_graceful_shutdown=_UVICORN_STOP_SECONDS,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
