"""A product of one part, for the tests of one fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from chaos.faults.harm import Harm
from chaos.faults.schedule import Fault
from chaos.history import History


@contextmanager
def harm_of(directory: Path, **parts: object) -> Iterator[Harm]:
    """A harm whose product has these parts only; its history is in the directory."""
    history, product = History(directory), SimpleNamespace(directory=directory, **parts)
    made: Any = product
    try:
        yield Harm(made, history)
    finally:
        history.close()


def fault_of(kind: str, seconds: float = 0.0, choice: int = 0) -> Fault:
    """The first fault of a schedule."""
    return Fault(number=0, kind=kind, at=0.0, seconds=seconds, choice=choice)
