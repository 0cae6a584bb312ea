"""Names of signals, with the real-time ones: ``SIGINT``, ``int``, ``2``, ``RTMAX-1``."""

import re
import signal
from typing import Final

_REAL_TIME: Final = re.compile(
    r"SIG(?:RTMIN(?:\+(?P<above>\d{1,2}))?|RTMAX(?:-(?P<below>\d{1,2}))?)", re.ASCII
)
_FIRST: Final = int(getattr(signal, "SIGRTMIN", 0))
_LAST: Final = int(getattr(signal, "SIGRTMAX", 0))
_PLAIN: Final = {
    name: int(number)
    for name, number in signal.Signals.__members__.items()
    if not name.startswith("SIGRT")
}
SIGNAL_NAMES: Final = tuple(sorted(_PLAIN)) + (("SIGRTMIN", "SIGRTMAX") if _FIRST else ())


def number_of_signal(name: str) -> int | None:
    """Return the number of a signal on this host by its name or number; None if there is none."""
    wanted = name.strip().upper()
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 4:
        number = int(wanted)
        return number if number in _PLAIN.values() or 0 < _FIRST <= number <= _LAST else None
    wanted = wanted if wanted.startswith("SIG") else f"SIG{wanted}"
    if (plain := _PLAIN.get(wanted)) is not None:
        return plain
    found = _REAL_TIME.fullmatch(wanted)
    if found is None or not _FIRST:
        return None
    number = (
        _FIRST + int(found["above"] or 0)
        if wanted.startswith("SIGRTMIN")
        else _LAST - int(found["below"] or 0)
    )
    return number if _FIRST <= number <= _LAST else None


def name_of_signal(number: int) -> str:
    """Return the name of a signal: ``SIGINT``, or ``SIGRTMIN+3`` for a real-time signal."""
    if 0 < _FIRST < number < _LAST:
        return f"SIGRTMIN+{number - _FIRST}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
