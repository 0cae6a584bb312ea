"""Run the daemon's command line: ``python -m controller_client``."""

from controller_client.cli import console

console()
