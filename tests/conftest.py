"""What every test gets: the check that it leaves nothing behind, and the switch between short and long forms."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.append_only import let_flush_pass
from tests.support.processes import children_of, describe
from tests.support.stack import LIVE, SERVERS, Stack
from tests.support.waiting import ConditionNotMetError, wait_until

pytest_plugins = ["tests.support.agent_fixtures", "tests.support.fixtures", "tests.support.node_packages", "tests.support.no_skips"]

_SETTLE_SECONDS = 30.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--long`` runs the fault tests in their long form; ``--server`` says what serves."""
    parser.addoption("--long", action="store_true", default=False, help="long forms of the fault tests")
    parser.addoption("--server", choices=SERVERS, default=SERVERS[0], help="the ASGI server of the stacks")


def pytest_configure(config: pytest.Config) -> None:
    """Every stack of this run is served by the one that was asked for."""
    Stack.SERVER_KIND = config.getoption("--server")


@pytest.fixture(scope="session")
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether the long forms were asked for."""
    return bool(request.config.getoption("--long"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the ends of the logs of the stacks it used."""
    report = yield
    if report.failed:
        values = getattr(item, "funcargs", {}).values()
        for stack in (value for value in values if isinstance(value, Stack)):
            report.sections.append(("logs of the stack", stack.logs()))
    return report


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """As pytest-django makes it; the database threads' connections are closed before the test database is dropped."""
    let_flush_pass()
    yield
    from projects.database import close_threads

    close_threads()


def _open_terminals() -> set[str]:
    links = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.add(f"{entry.name} {entry.readlink()}")
        except FileNotFoundError:  # the directory's own descriptor
            continue
    return {link for link in links if link.split()[1] in {"/dev/ptmx", "/dev/pts/ptmx"}}


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """No child process and no open terminal of the test outlives it."""
    if not Path("/proc/self").exists():
        yield
        return
    children, terminals, live_before = children_of(os.getpid()), _open_terminals(), list(LIVE)
    yield

    def left() -> list[str]:
        # What a test stopped of a stack it shares, it has started again.
        expected = children.union(*(live.process_ids() for live in live_before))
        processes = [describe(pid) for pid in children_of(os.getpid()) - expected]
        return processes + sorted(_open_terminals() - terminals)

    try:
        wait_until(lambda: not left(), _SETTLE_SECONDS, "processes and terminals of the test to be gone")
    except ConditionNotMetError:
        pytest.fail(f"left behind: {left()}")
