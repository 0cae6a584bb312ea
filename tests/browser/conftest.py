"""An operator's tab, logged in. Each module brings the stack: ``own_stack``."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.browser import Page, browser
from tests.support.stack import PROJECT_ROOT, Stack


@pytest.fixture(scope="session", autouse=True)
def _browser_files() -> None:
    """The terminal emulator of the pages is there before a server looks for static files."""
    subprocess.run([sys.executable, "-m", "quickstart.browser_files"], cwd=PROJECT_ROOT, check=True)


@pytest.fixture(scope="module")
def password(own_stack: Stack) -> str:
    """The password of the administrator account."""
    environment = {
        **own_stack.server_environment(),
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
    }
    command = [
        sys.executable,
        "manage.py",
        "bootstrap",
        "--url",
        f"http://127.0.0.1:{own_stack.port}",
    ]
    made = subprocess.run(
        command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return str(json.loads(made.stdout)["admin_password"])


@pytest.fixture
def page(own_stack: Stack, password: str) -> Iterator[Page]:
    """A tab that is logged in."""
    with browser() as tab:
        tab.open(f"http://127.0.0.1:{own_stack.port}/admin/")
        tab.fill("#id_username", "admin")
        tab.fill("#id_password", password)
        tab.click("input[type=submit]")
        assert "Site administration" in tab.text()
        yield tab
