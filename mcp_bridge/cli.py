"""The command ``holdline-mcp``: where the server is and with which token, from arguments or the environment."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

import anyio

from mcp_bridge.bridge import serve

USAGE: Final = 64
UNAVAILABLE: Final = 69
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def console() -> None:
    """Entry point of the installed command."""
    code = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    # A thread of the library may still wait for a line on stdin: it would keep the process, and the client waiting for its end.
    os._exit(code)


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Serves stdio until the client is gone; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        url, token = _target(options, environment)
    except (ValueError, OSError) as error:
        return _fail(str(error), USAGE)
    # The library's log would tell of every request.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="holdline-mcp: %(message)s")
    try:
        anyio.run(serve, url, token)
    except KeyboardInterrupt:
        return 0
    except Exception as error:  # noqa: BLE001 - whatever ended it, the client's log is to say it in one line
        return _fail(f"{url} failed: {_first_of(error)}", UNAVAILABLE)
    return 0


def _target(options: argparse.Namespace, environment: Mapping[str, str]) -> tuple[str, str]:
    url: str = options.url or environment.get("HOLDLINE_URL", "")
    token = Path(options.token_file).read_text().strip() if options.token_file else environment.get("HOLDLINE_TOKEN", "").strip()
    if not url or not token:
        raise ValueError("give the address of the server (--url or HOLDLINE_URL) and a token (--token-file or HOLDLINE_TOKEN)")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("the address must be a URL such as https://holdline.example.com/mcp")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError("a token does not leave this machine in the clear: use https")
    if options.toolsets:
        url += ("&" if parts.query else "?") + urlencode({"toolsets": options.toolsets})
    return url, token


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="holdline-mcp", description="Holdline's tools over stdio.")
    parser.add_argument("--url", help="the server's /mcp (default: HOLDLINE_URL)")
    parser.add_argument("--token-file", help="file with the API token (default: the token itself in HOLDLINE_TOKEN)")
    parser.add_argument("--toolsets", help="narrow the tools, such as agent or interactive,jobs")
    return parser


def _first_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _fail(text: str, code: int) -> int:
    print(f"holdline-mcp: {text}", file=sys.stderr)  # noqa: T201 - stderr is where a client keeps its servers' words
    return code
