"""The plan of a random program: its parts, drawn by a seed, and the plans that are simpler.

``tests/programs/fixtures/clocked/random_parts.py`` runs a plan. A plan is a JSON value, so that it
can be written down, changed and run again.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any, Final

Plan = dict[str, Any]

_OWN: Final = ("pipe", "eventfd", "socketpair")
"""Kinds that a process can keep to itself."""
_FOREIGN: Final = ("fifo", "inotify", "unix", "tcp", "tcp_pair", "serial", "far_terminal")
_OF_CHILDREN: Final = ("process", "child_signal", "wakeup_pipe")
"""Kinds that are set off by the end of a child."""
_TIMERS: Final = ("timer", "alarm")
_OF_SIGNALS: Final = ("child_signal", "wakeup_pipe", "alarm")
"""Kinds that need a process of one thread."""
_CHILDREN: Final = ("child", "group", "session")
_PLACES: Final = (*_CHILDREN, "grandchild", "orphan", "thread")
_DOINGS: Final = ("sleep", "select", "timer", "compute", "wait for another", "wait for a socket")
_POLLS: Final = ("poll", "select", "epoll", "nested", "nested apart", "poll of set")
_ONE: Final = ("poll", "select", "epoll", "nested", "poll of set")
_READS: Final = ("read", "read", "read", *_ONE)
_TOGETHER: Final = ("together", "handed", "relayed")
"""Ways to wait for several descriptors at once."""
_TEXTS: Final = ("", "", "", "step\n", "Unpacking archive... ", "name: ", "Continue? [y/N] ", "$ ")
_PROMPTS: Final = ("name: ", "Continue? [y/N] ", "> ")


def plan_of(seed: int) -> Plan:
    """Return the plan that a seed stands for."""
    draw = random.Random(seed)
    reader = draw.choice(("same", "same", "same", "thread", "main"))
    steps = [_step(draw, reader) for _ in range(draw.choice((1, 1, 1, 2, 2, 3)))]
    return {
        "reader": reader,
        "mode": draw.choice(("lines", "lines", "raw", "hidden")),
        "own_group": draw.random() < 0.5,
        "steps": steps,
        "final": _final(draw, reader),
    }


def _step(draw: random.Random, reader: str) -> Plan:
    ways = ("apart", "apart", "awaited", "work")
    if reader == "same":
        ways = ("together",) * 5 + ("timed", "handed", "awaited", "work")
        ways += ("beside", "relayed") * 2
    way = draw.choice(ways)
    step: Plan = {
        "way": way,
        "text": draw.choice(_TEXTS),
        "seconds": round(draw.choice((0.03, 0.06, 0.1, 0.1, 0.4)) * (0.5 + draw.random()), 3),
    }
    if way == "work":
        return {**step, "doing": draw.choice(_DOINGS)}
    if way == "timed":
        return {**step, "how": draw.choice(_ONE)}
    if way == "beside":
        step["reader"] = draw.choice(_READS)
    if way == "relayed":
        step["listens"] = draw.random() < 0.7
    count = draw.choice((1, 1, 2)) if way in _TOGETHER else 1
    sources = [_source(draw, way, reader) for _ in range(count)]
    if any(source["kind"] in _OF_SIGNALS for source in sources):
        # Another thread would take the signal.
        sources = [{**each, "where": draw.choice(_CHILDREN)} for each in sources]
    how = _POLLS if way in _TOGETHER else _READS
    return {**step, "how": draw.choice(how), "sources": sources}


def _source(draw: random.Random, way: str, reader: str) -> Plan:
    kinds = _OWN * 3 + _FOREIGN + _OF_CHILDREN + _TIMERS
    if way == "relayed":
        # Whether a relay has set an alarm cannot be known; ADR 0003 says so.
        kinds = tuple(kind for kind in kinds if kind != "alarm")
    kind = draw.choice([kind for kind in kinds if reader == "same" or kind not in _OF_SIGNALS])
    is_child = kind in _OF_CHILDREN or way == "awaited"
    return {
        "kind": kind,
        "where": draw.choice(_CHILDREN if is_child else _PLACES),
        "doing": draw.choice(_DOINGS),
        "closes": draw.random() < 0.5,
        "has_keyboard": draw.random() < 0.5,
    }


def _final(draw: random.Random, reader: str) -> Plan:
    # A reader in another thread has begun to wait long before: its way is the one of all steps.
    if reader != "same":
        return {"how": draw.choice(_READS), "idle": [], "text": draw.choice(_TEXTS)}
    is_alone = draw.random() < 0.5
    if is_alone:
        return {"how": draw.choice(_READS), "idle": [], "text": draw.choice(_TEXTS)}
    is_own = draw.random() < 0.6
    return {
        "how": draw.choice(_POLLS),
        "idle": [draw.choice(_OWN if is_own else _FOREIGN)],
        "text": draw.choice(_TEXTS if is_own else _PROMPTS),
    }


def simpler(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one part less, or with one part replaced by a plainer one."""
    for number in range(len(plan["steps"])):
        if len(plan["steps"]) > 1:
            yield _changed(plan, lambda new, n=number: new["steps"].pop(n))
    plain: Plan = {"mode": "lines", "own_group": False}
    for word, value in plain.items():
        if plan[word] != value:
            yield {**plan, word: value}
    if plan["final"] != {**plan["final"], "idle": [], "text": ""}:
        yield {**plan, "final": {**plan["final"], "idle": [], "text": ""}}
    for number, step in enumerate(plan["steps"]):
        for simple in _simpler_steps(step):
            yield _changed(plan, lambda new, n=number, to=simple: new["steps"].__setitem__(n, to))


def _simpler_steps(step: Plan) -> Iterator[Plan]:
    if step["text"]:
        yield {**step, "text": ""}
    sources = step.get("sources", [])
    if len(sources) > 1:
        for source in sources:
            yield {**step, "sources": [source]}
    plain = {"doing": "sleep", "where": "child", "closes": False, "has_keyboard": True}
    for number, source in enumerate(sources):
        for word, value in plain.items():
            if source[word] != value:
                new = [*sources]
                new[number] = {**source, word: value}
                yield {**step, "sources": new}


def _changed(plan: Plan, change: Any) -> Plan:
    new = copy.deepcopy(plan)
    change(new)
    return new
