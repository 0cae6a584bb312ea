"""The command ``holdline-mcp``: find the server and the token, then serve stdio.

Both come from the arguments or from the environment.
"""

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

import anyio

from mcp_bridge.bridge import serve

USAGE: Final = 64
UNAVAILABLE: Final = 69
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def console() -> None:
    """Entry point of the script ``holdline-mcp``: exits with the code of :func:`main`."""
    try:
        code = main(sys.argv[1:], os.environ)
    except SystemExit as ended:
        # argparse exits by itself: 0 after --help, else 2, for wrong usage.
        code = USAGE if ended.code else 0
    # A client that is gone reads nothing any more.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    # A thread of the SDK may still wait for a line on stdin. It would keep the process alive, and
    # the client waits for the end of the process.
    os._exit(code)


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Serve stdio until the client is gone; return the exit code.

    Raises SystemExit for --help and wrong usage, as argparse does.
    """
    options = _parser().parse_args(arguments)
    try:
        url, token = _target(options, environment)
    except (ValueError, OSError) as error:
        return _fail(str(error), USAGE)
    # Below this level the SDK logs every request.
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="holdline-mcp: %(message)s"
    )
    try:
        anyio.run(serve, url, token)
    except KeyboardInterrupt:
        return 0
    except Exception as error:  # noqa: BLE001 - the client's log gets the cause in one line
        return _fail(f"{url} failed: {_first_of(error)}", UNAVAILABLE)
    return 0


def _target(options: argparse.Namespace, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the address to connect to and the token. Raises ValueError, OSError."""
    url: str = options.url or environment.get("HOLDLINE_URL", "")
    token = (
        Path(options.token_file).read_text()
        if options.token_file
        else environment.get("HOLDLINE_TOKEN", "")
    ).strip()
    if not url:
        raise ValueError("no address of a server: use --url or HOLDLINE_URL")
    if not token:
        raise ValueError("no token: use --token-file or HOLDLINE_TOKEN")
    if " " in token or not (token.isascii() and token.isprintable()):
        raise ValueError("this is no API token of Holdline: copy it again, in one line")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("the address must be a URL such as https://holdline.example.com/mcp")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError(
            "http:// would send the token unencrypted and is allowed to this machine only; use "
            "https://"
        )
    return (_narrowed(parts, options.toolsets) if options.toolsets else url), token


def _narrowed(parts: SplitResult, toolsets: str) -> str:
    """Return the address with these toolsets in place of those that it had."""
    kept = [pair for pair in parse_qsl(parts.query, True) if pair[0] != "toolsets"]
    query = urlencode([*kept, ("toolsets", toolsets)])
    return urlunsplit(parts._replace(query=query, fragment=""))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdline-mcp",
        description="Offer a Holdline server's tools to an MCP client on stdio.",
    )
    parser.add_argument(
        "--url", help="address of the server, such as https://HOST/mcp (default: HOLDLINE_URL)"
    )
    parser.add_argument(
        "--token-file", help="file with the API token (default: the token in HOLDLINE_TOKEN)"
    )
    parser.add_argument(
        "--toolsets", help="offer only these tools, such as agent or interactive,jobs"
    )
    return parser


def _first_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"holdline-mcp: {text}\n")
    return code
