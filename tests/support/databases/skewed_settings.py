"""Settings of a server process whose clock is wrong by SKEW_SECONDS."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from django.utils import timezone

from config.settings import base

globals().update({name: value for name, value in vars(base).items() if name.isupper()})

_right = time.time
_skew = os.environ["SKEW_SECONDS"]


def _off_seconds() -> float:
    """The number in SKEW_SECONDS, or in the file that it names.

    A file can be written while the process runs, so a test can set the clock of a running process.
    """
    return float(Path(_skew).read_text() if _skew.startswith("/") else _skew)


time.time = lambda: _right() + _off_seconds()
timezone.now = lambda: datetime.fromtimestamp(time.time(), tz=UTC)
