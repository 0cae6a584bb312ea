"""A small picture of what a run had in use over its time, as SVG."""

from collections.abc import Iterator
from html import escape
from typing import Final

from chaos.judge.record import Record
from chaos.judge.resources import number

Points = list[tuple[float, float]]

_WIDTH: Final = 560
_HEIGHT: Final = 120
_LEFT: Final = 48
_TOP: Final = 22
_BOTTOM: Final = 18
_MOST_POINTS: Final = 150
_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
_MIB: Final = 1 << 20


def picture(record: Record) -> str:
    """Three plots below each other: memory, descriptors, and the database, over the minutes."""
    panels = {
        "memory, MiB": _series(record, "bytes", _MIB),
        "descriptors": _series(record, "descriptors", 1),
        "database, MiB": {"database": _points(record, "database", "bytes", _MIB)},
    }
    drawn = [
        line
        for place, (title, series) in enumerate(panels.items())
        for line in _panel(title, series, place * _HEIGHT)
    ]
    size = f'width="{_WIDTH}" height="{_HEIGHT * len(panels)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, "</svg>\n"])


def _series(record: Record, what: str, unit: int) -> dict[str, Points]:
    names = sorted({str(note["process"]) for note in record.notes["sample"]})
    return {name: _points(record, "sample", what, unit, name) for name in names}


def _points(record: Record, kind: str, what: str, unit: int, process: str | None = None) -> Points:
    """The values over the minutes of the run, thinned out; a process that is gone has none."""
    notes = [note for note in record.notes[kind] if note.get("process") == process and note[what]]
    begin = min((number(note["at"]) for note in record.notes["sample"]), default=0.0)
    step = max(1, len(notes) // _MOST_POINTS)
    return [((number(n["at"]) - begin) / 60, number(n[what]) / unit) for n in notes[::step]]


def _panel(title: str, series: dict[str, Points], top: int) -> Iterator[str]:
    """One plot: its title, the most of both axes, and a line for each name."""
    every = [point for points in series.values() for point in points]
    longest = max((x for x, _ in every), default=0.0) or 1.0
    most = max((y for _, y in every), default=0.0) or 1.0
    wide, high = _WIDTH - _LEFT - 10, _HEIGHT - _TOP - _BOTTOM
    base = top + _TOP + high
    yield f'<text x="{_LEFT}" y="{top + 14}">{escape(title)}</text>'
    yield f'<path d="M{_LEFT} {top + _TOP}V{base}H{_LEFT + wide}" fill="none" stroke="#888"/>'
    yield f'<text x="{_LEFT - 4}" y="{top + _TOP + 8}" text-anchor="end">{most:.0f}</text>'
    yield f'<text x="{_LEFT - 4}" y="{base}" text-anchor="end">0</text>'
    end = _LEFT + wide
    yield f'<text x="{end}" y="{base + 12}" text-anchor="end">{longest:.0f} min</text>'
    for place, (name, points) in enumerate(series.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        line = " ".join(
            f"{_LEFT + x / longest * wide:.1f},{base - y / most * high:.1f}" for x, y in points
        )
        yield f'<polyline points="{line}" fill="none" stroke="{colour}"/>'
        legend = end - 70 * (len(series) - place - 1)
        yield f'<text x="{legend}" y="{top + 14}" text-anchor="end" fill="{colour}">{name}</text>'
