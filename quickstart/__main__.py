"""The first stage of the quickstart, on the standard library alone: nothing is installed yet."""

import os
import sys
from pathlib import Path

from quickstart import browser_files, environment, preflight
from quickstart.console import Console
from quickstart.errors import QuickstartError, SystemRefused
from quickstart.options import ROOT, parse


def main() -> None:
    """Check, install, and become the second stage; exits with 1 and a message on failure."""
    console = Console()
    try:
        preflight.check(parse(sys.argv[1:], os.environ))
        python = environment.ensure("requirements.txt", console)
        _fetch_browser_files(python, console)
    except QuickstartError as error:
        console.error(error)
        sys.exit(1)
    except OSError as error:
        console.error(SystemRefused(error))
        sys.exit(1)
    except KeyboardInterrupt:
        console.line("stopped; run bin/quickstart again to continue")
        sys.exit(1)
    os.chdir(ROOT)
    os.execv(python, [str(python), "-m", "quickstart.run", *sys.argv[1:]])  # noqa: S606 - no shell on purpose


def _fetch_browser_files(python: Path, console: Console) -> None:
    """Without these files the console shows screens as text, so a failure ends nothing."""
    try:
        browser_files.ensure(python, console)
    except QuickstartError as error:
        console.error(error)
        console.line(f"       Going on without it: {browser_files.WITHOUT}.")


if __name__ == "__main__":
    main()
