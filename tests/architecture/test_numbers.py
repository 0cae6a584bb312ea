"""Numbers, statuses and lists that a page states are those of the code."""

import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

from chaos.judge import resources
from chaos.mutations import MUTATIONS
from controller_client.holder.process import LINGER_SECONDS
from controller_client.logs.watch import IDLE_SECONDS
from controller_client.protocol.limits import MAX_RING_BYTES, RING_BYTES, TERMINATE_GRACE_SECONDS
from mcp_bridge.cli import UNAVAILABLE, USAGE
from projects.accounts.toolsets import TOOLSETS
from projects.attention.places import MOST_OF_PROJECT, MOST_SENDING
from projects.conf import conf
from projects.errors.base import ControllerActionError
from projects.link.echo_timer import PERIOD_SECONDS
from projects.policy.arguments import MAX_COLS, MAX_ROWS
from projects.process.watchdog import EXIT_CODE, STILL_SECONDS
from projects.sessions import jobs, one_shot
from projects.sessions.transactions.returning import RETURN_SECONDS
from projects.sessions.turns import MAX_OUTPUT_BYTES
from projects.storage.access import LONG_THREADS, OPEN_THREADS, UPKEEP_THREADS
from projects.tools.registry import ALL_TOOLS
from projects.tools.terminal_arguments import MAX_WAIT_SECONDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
BRIDGE = "../mcp_bridge/README.md"
_WORDS = {1: "one", 2: "two", 8: "eight"}
_MIB = 1024 * 1024


# The program is ended after its timeout and its grace, and its end is reported soon after.
_LONGEST_ONE_SHOT = one_shot.MAX_TIMEOUT_SECONDS + TERMINATE_GRACE_SECONDS + 5

STATED = [
    ("howto/connect-a-client.md", f"waits at most {MAX_WAIT_SECONDS:g} s (`wait_seconds`"),
    ("howto/connect-a-client.md", f"command for at most {one_shot.MAX_TIMEOUT_SECONDS:g} s,"),
    ("howto/connect-a-client.md", f"up to {_LONGEST_ONE_SHOT:g} s. A call that a person"),
    ("howto/connect-a-client.md", f"or its newest {MAX_OUTPUT_BYTES // 1024} KiB"),
    ("reference/errors.md", f"for one that left in the last {RETURN_SECONDS:g} s."),
    ("reference/errors.md", f"({conf.session_retention_seconds / 86400:g} days after its end"),
    ("reference/errors.md", f"a body over {conf.data_upload_max_memory_size // _MIB} MiB"),
    ("reference/settings.md", f"its own timeout, up to {one_shot.MAX_TIMEOUT_SECONDS:g} s."),
    ("reference/settings.md", "Up to five more threads do long reads and the upkeep"),
    ("reference/glossary.md", f"memory, up to {RING_BYTES // _MIB} MiB (of a job"),
    ("reference/glossary.md", f"at most {MAX_RING_BYTES // _MIB} MiB), kept until"),
    ("reference/tools.md", f"Height of the terminal, 1 to {MAX_ROWS}."),
    ("reference/tools.md", f"Width of the terminal, 1 to {MAX_COLS}."),
    ("reference/tools.md", f"then SIGKILL after {TERMINATE_GRACE_SECONDS:g} s for processes"),
    ("reference/tools.md", f"which is {jobs.DEFAULT_TIMEOUT_SECONDS:g} s unless you give more."),
    ("processes-and-tasks.md", f"at most {MOST_SENDING}, and {_WORDS[MOST_OF_PROJECT]} of one"),
    ("processes-and-tasks.md", f"ends the process with exit code {EXIT_CODE}, and writes"),
    ("processes-and-tasks.md", f"{_WORDS[LONG_THREADS]} for long reads, {_WORDS[OPEN_THREADS]} fo"),
    ("processes-and-tasks.md", f"a caller chooses the cost, and {_WORDS[UPKEEP_THREADS]} for up"),
    ("processes-and-tasks.md", f"asks the host every {PERIOD_SECONDS:g} s, and when a person"),
    ("processes-and-tasks.md", f"the first wait | {IDLE_SECONDS:g} s without a wait"),
    ("reliability.md", f"has at most {resources._MOST_BYTES_A_CALL // 1024} KiB a call beside"),
    ("reliability.md", f"a process {resources._WARM_PROCESS_SECONDS:g} s after it was first seen"),
    (BRIDGE, f"| {USAGE} | wrong usage |"),
    (BRIDGE, f"| {UNAVAILABLE} | at the start, the server could not be reached"),
]
# What the schemas of the answers state, which no page repeats.
STATED_IN_SCHEMAS = [f"({conf.lease_seconds:g} s, unless the server says otherwise) before."]


@pytest.mark.parametrize(("page", "sentence"), STATED, ids=lambda value: value[:40])
def test_a_number_on_a_page_is_the_one_of_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join((DOCS / page).read_text().split())


@pytest.mark.parametrize("sentence", STATED_IN_SCHEMAS)
def test_a_number_in_a_schema_is_the_one_of_the_code(sentence: str) -> None:
    assert sentence in " ".join(str(tool.output_schema) for tool in ALL_TOOLS)


def test_numbers_that_pages_write_as_words_hold() -> None:
    page = (DOCS / "processes-and-tasks.md").read_text()
    assert "has not run for a minute" in page
    assert STILL_SECONDS == 60
    assert "no daemon has asked for the session for a week" in page
    assert LINGER_SECONDS == 7 * 86400
    assert LONG_THREADS + OPEN_THREADS + UPKEEP_THREADS == 5
    tool_page = (DOCS / "reference/tools.md").read_text()
    assert "when nobody has asked about it for half an hour" in tool_page
    assert conf.background_idle_seconds == 1800
    assert "default: a day, unless the server says otherwise" in tool_page
    assert conf.background_lifetime_seconds == 86400


def test_every_code_has_the_status_that_its_row_states() -> None:
    """The first status is that of a refusal by the server; the text names those of the host."""
    for module in ("projects.monitors.errors", "agent.errors", "console.live.desk"):
        importlib.import_module(module)
    statuses: dict[str, set[int]] = defaultdict(set)
    todo: list[type[ControllerActionError]] = [ControllerActionError]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if not kind.__module__.startswith("tests."):
            for code in getattr(kind, "HINTS", None) or (kind.code,):
                statuses[code].add(kind.status)
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (\d+) \| (.*) \|$",
        (DOCS / "reference/errors.md").read_text(),
        re.MULTILINE,
    )
    assert {code for code, _, _ in rows} == statuses.keys()
    for code, status, text in rows:
        stated = {int(number) for number in re.findall(r"\b[45]\d\d\b", text)} | {int(status)}
        assert stated == statuses[code], code


def test_the_toolsets_of_the_page_are_those_that_there_are() -> None:
    page = (DOCS / "howto/connect-a-client.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows.keys() == TOOLSETS.keys()
    for name, text in rows.items():
        named = set(re.findall(r"`([a-z_]+)`", text))
        if name == "interactive":
            removed, added = text.split(", and ")
            named = TOOLSETS["agent"] - {"execute_command"}
            assert "those of `agent` without `execute_command`" in removed
            named |= set(re.findall(r"`([a-z_]+)`", added))
        if name == "all":
            named = {tool.name for tool in ALL_TOOLS}
        assert named == TOOLSETS[name], name


def test_the_mistakes_of_the_page_are_those_that_are_made() -> None:
    page = (DOCS / "reliability.md").read_text()
    _, _, table = page.partition("| Mistake | Caught by | Seconds |\n")
    rows = re.findall(r"^\| (.+) \| (.+) \| \d+ \|$", table.partition("\n\n")[0], re.MULTILINE)
    stated = [(mistake.replace("`", ""), rule) for mistake, rule in rows]
    assert stated == [(mutation.name, mutation.rule) for mutation in MUTATIONS]
    assert "All ten were caught" in page
    assert len(MUTATIONS) == 10


def test_what_counts_as_warm_and_as_growth_is_stated() -> None:
    page = " ".join((DOCS / "reliability.md").read_text().split())
    assert "in a run whose load is two minutes old" in page
    assert resources._WARM_LOAD_SECONDS == 120
    assert "A run of less than seven minutes is not judged by this" in page
    assert resources._WARM_LOAD_SECONDS + resources._LEAST_SECONDS == 420
    assert "no more than a tenth higher late in the run than early" in page
    assert resources._MOST_GROWTH == 1.1
