"""The accounts, servers and places of the catalogue, and the table of figures at the end."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs.catalogue.figures import FIGURES, Figures
from tests.programs.catalogue.provisions import GO, MODULES, PYTHON, SCRIPTS, provide
from tests.programs.catalogue.servers import SERVERS, Places
from tests.programs.conftest import FORGETFUL, FarHost
from tests.support.accounts import Account, ordinary_user
from tests.support.ports import free_port


@pytest.fixture(scope="module")
def user() -> Iterator[Account]:
    """Return an account that may use sudo with its password."""
    with ordinary_user("c", may_sudo=True) as account:
        yield account


@pytest.fixture(scope="module")
def keeper() -> Iterator[Account]:
    """Return the account of a daemon whose programs run as another user."""
    with ordinary_user("b") as account:
        yield account


def _servers(request: pytest.FixtureRequest) -> set[str]:
    items = [getattr(item, "callspec", None) for item in request.session.items]
    programs = [spec.params.get("program") for spec in items if spec is not None]
    return {program.server for program in programs if program is not None and program.server}


@pytest.fixture(scope="module")
def places(request: pytest.FixtureRequest, user: Account, is_long: bool) -> Iterator[Places]:
    """Start the servers that the chosen programs need, and return what the places stand for."""
    if is_long:
        provide()
    wanted = _servers(request)
    found = {"user": user.name, "free": str(free_port()), "pid": str(os.getpid())}
    found |= {"python": str(PYTHON), "node": str(SCRIPTS), "modules": str(MODULES)}
    found["go"] = str(GO)
    with ExitStack() as stack:
        for name in sorted(wanted - {"ssh"}):
            found |= stack.enter_context(SERVERS[name]())
        if "ssh" in wanted:
            found |= _far(request.getfixturevalue("far_host"))
        yield found


def _far(host: FarHost) -> Places:
    options = f"{FORGETFUL} -o LogLevel=ERROR"
    trusting = f"{options} -o StrictHostKeyChecking=no"
    return {
        "far": host.command.replace("ssh ", f"ssh {trusting} ", 1),
        "ssh_port": str(host.port),
        "ssh_options": trusting,
        "ssh_user": host.account.name,
        "ssh_password": host.account.password,
    }


@pytest.fixture
def home() -> Iterator[Path]:
    """Return the directory in which the program runs."""
    directory = Path(tempfile.mkdtemp(prefix="holdline-program-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Return the figures of this run, which are shown at its end."""
    return request.config.stash.setdefault(FIGURES, Figures())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show how often the watcher was right, class by class, and each fault."""
    if FIGURES in config.stash:
        terminalreporter.section("programs of the catalogue")
        terminalreporter.write_line(config.stash[FIGURES].table())
