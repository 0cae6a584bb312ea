"""The whole catalogue, class by class."""

from dataclasses import replace
from itertools import chain
from types import ModuleType

from tests.programs.catalogue.languages import consoles, scripts, shells
from tests.programs.catalogue.program import Program
from tests.programs.catalogue.relays import agents, hosts, terminals, traps
from tests.programs.catalogue.screens import editors, forms, pagers, questions
from tests.programs.catalogue.tools import (
    databases,
    debuggers,
    packages,
    passwords,
    versions,
    work,
)

_CLASSES = (
    shells,
    consoles,
    scripts,
    databases,
    debuggers,
    versions,
    passwords,
    packages,
    work,
    editors,
    pagers,
    forms,
    questions,
    terminals,
    hosts,
    traps,
    agents,
)


EACH_DAY = 4
"""The programs of each class that run in each run of the tests: the first ones of EVERYDAY."""


def _named(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


CATALOGUE: dict[str, tuple[Program, ...]] = {
    _named(module): tuple(
        chain(
            (replace(each, everyday=True) for each in module.EVERYDAY[:EACH_DAY]),
            module.EVERYDAY[EACH_DAY:],
            module.ALL,
        )
    )
    for module in _CLASSES
}
