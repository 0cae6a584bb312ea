"""Command line and environment of the quickstart, as one value."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quickstart.errors import UnusablePort

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PORT = 8000
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Options:
    """What was asked for. ``data_dir`` is absolute."""

    data_dir: Path
    port: int
    once: bool

    @property
    def base_url(self) -> str:
        """Where the server answers."""
        return f"http://127.0.0.1:{self.port}"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the command line; argparse exits with 2 on a wrong one. Raises UnusablePort.

    A relative ``--data-dir`` is meant from where the caller stood, which ``bin/quickstart`` leaves in HOLDLINE_CALLED_FROM.
    """
    parser = argparse.ArgumentParser(
        prog="bin/quickstart",
        description="Set up and run a Holdline server and a local controller, and show one interactive session.",
        epilog="PORT in the environment chooses the port of the server (default 8000, on 127.0.0.1 only).",
    )
    parser.add_argument("--once", action="store_true", help="stop after the demonstration: exit 0 if it went well, 1 if not")
    parser.add_argument("--data-dir", default=None, metavar="DIR", help="where all state is kept (default: .holdline in the checkout)")
    chosen = parser.parse_args(arguments)
    stood_in = Path(environ.get("HOLDLINE_CALLED_FROM") or Path.cwd())
    data_dir = ROOT / ".holdline" if chosen.data_dir is None else stood_in / Path(chosen.data_dir).expanduser()
    return Options(data_dir=data_dir.resolve(), port=_port(environ.get("PORT", "")), once=chosen.once)


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _HIGHEST_PORT:
        raise UnusablePort(repr(text), "is not a port number", f"Set PORT to a number from 1 to {_HIGHEST_PORT}, or leave it unset.")
    return int(text)
