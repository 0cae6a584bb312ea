"""The options of the quickstart, from its command line and its environment."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quickstart.errors import UnknownHome, UnusablePort

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PORT = 8000
_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Options:
    """The chosen options; paths are absolute.

    ``is_port_chosen``: PORT is set, so no other port will do. ``is_of_environment``: the data
    directory is the one of HOLDLINE_DATA_DIR, which servers have as well.
    """

    data_dir: Path
    port: int
    once: bool
    is_port_chosen: bool = False
    log_roots: tuple[Path, ...] = ()
    is_of_environment: bool = False

    @property
    def base_url(self) -> str:
        """The origin of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """The options of a command line; argparse exits with 2 on a wrong one.

    Raises UnusablePort or UnknownHome.

    Relative paths start from the caller's directory, which ``bin/quickstart`` passes in
    HOLDLINE_CALLED_FROM.
    """
    parser = argparse.ArgumentParser(
        prog="bin/quickstart",
        description=(
            "Set up and run a Holdline server and a local controller, and show one "
            "interactive session."
        ),
        epilog=(
            "PORT in the environment chooses the port of the server, on 127.0.0.1 only "
            "(default: 8000, or the next free one)."
        ),
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="stop after the demonstration; exit 1 if the demonstration failed",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="directory for all state (default: HOLDLINE_DATA_DIR, or .holdline in the checkout)",
    )
    parser.add_argument(
        "--log-root",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory whose logs may be monitored; may repeat",
    )
    chosen = parser.parse_args(arguments)
    start = Path(environ.get("HOLDLINE_CALLED_FROM") or Path.cwd())
    of_environment = "" if chosen.data_dir else environ.get("HOLDLINE_DATA_DIR", "")
    place = chosen.data_dir or of_environment or str(ROOT / ".holdline")
    data_dir = start / _expanded(place)
    port = environ.get("PORT", "")
    return Options(
        data_dir=data_dir.resolve(),
        port=_port(port),
        once=chosen.once,
        is_port_chosen=bool(port),
        log_roots=tuple((start / _expanded(root)).resolve() for root in chosen.log_root),
        is_of_environment=bool(of_environment),
    )


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UnknownHome(path) from None


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _HIGHEST_PORT:
        raise UnusablePort(
            repr(text),
            "is not a port number",
            f"Set PORT to a number from 1 to {_HIGHEST_PORT}, or leave it unset.",
        )
    return int(text)
