"""Options and checks for all tests.

A test must leave no process and no terminal behind. ``--long`` selects long forms of tests.
"""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.processes import describe
from tests.support.running.append_only import let_flush_pass
from tests.support.running.warm_start import own_processes
from tests.support.stack import LIVE, SERVERS, Stack
from tests.support.waiting import ConditionNotMetError, wait_until

pytest_plugins = [
    "tests.support.agents.fixtures",
    "tests.support.hosts.consumer_server",
    "tests.support.running.fixtures",
    "tests.support.mcp.node_packages",
    "tests.support.running.no_skips",
]

_SETTLE_SECONDS = 90.0
# A busy machine may be slow with an example. That fails no property test.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--long`` for long forms of tests, and what else the stacks of this run are."""
    parser.addoption(
        "--two-users",
        action="store_true",
        default=False,
        help="programs of the shared stacks run as another user than the daemon",
    )
    parser.addoption("--long", action="store_true", default=False, help="long forms of tests")
    parser.addoption(
        "--server", choices=SERVERS, default=SERVERS[0], help="the ASGI server of the stacks"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Serve every stack of this run with the server of ``--server``, started warm unless long."""
    Stack.SERVER_KIND = config.getoption("--server")
    Stack.IS_WARM = not config.getoption("--long")


@pytest.fixture(scope="session")
def is_long(request: pytest.FixtureRequest) -> bool:
    """True if ``--long`` was given."""
    return bool(request.config.getoption("--long"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last lines of a stack's logs with a failed test that used the stack."""
    report = yield
    if report.failed:
        values = getattr(item, "funcargs", {}).values()
        for stack in (value for value in values if isinstance(value, Stack)):
            report.sections.append(("logs of the stack", stack.logs()))
    return report


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """pytest-django's test database.

    The database threads close their connections before the database is dropped.
    """
    from tests.support.running.first_rows import keep_first_rows

    let_flush_pass()
    keep_first_rows()
    yield
    from projects.storage.access import close_threads

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
    """Fail a test that leaves a child process or an open terminal."""
    if not Path("/proc/self").exists():
        yield
        return
    children, terminals, live_before = own_processes(), _open_terminals(), list(LIVE)
    yield

    def left() -> list[str]:
        # The processes of shared stacks may be others now: a test starts again whatever it stops.
        expected = children.union(*(live.process_ids() for live in live_before))
        processes = [describe(pid) for pid in own_processes() - expected]
        return processes + sorted(_open_terminals() - terminals)

    try:
        wait_until(
            lambda: not left(), _SETTLE_SECONDS, "processes and terminals of the test to be gone"
        )
    except ConditionNotMetError:
        pytest.fail(f"left behind: {left()}")
