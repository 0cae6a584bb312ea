"""Settings of a server process whose clock is off by SKEW_SECONDS: everything it asks for the time is told so."""

import os
import time
from datetime import UTC, datetime

from django.utils import timezone

from config.settings import base

globals().update({name: value for name, value in vars(base).items() if name.isupper()})

_right = time.time
_off_seconds = float(os.environ["SKEW_SECONDS"])
time.time = lambda: _right() + _off_seconds
timezone.now = lambda: datetime.fromtimestamp(time.time(), tz=UTC)
