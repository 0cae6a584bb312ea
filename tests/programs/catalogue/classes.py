"""The whole catalogue, class by class.

First run of the 60 programs of each day, as root and as an ordinary user (119 plays, 357 verdicts,
before anything was corrected): 340 right, 14 of another kind (12 of them: the argument of an option
of a shell counts as a script), 3 early by a wrong declaration (a prompt of root), 0 missed.
"""

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
