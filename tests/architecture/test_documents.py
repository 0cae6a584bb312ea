"""The documents keep up with the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import errors as run_errors
from controller_client import policy_file
from controller_client.protocol import messages
from projects import account_errors, errors, monitor_errors
from projects.errors import ControllerActionError

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "controller_client").glob("*.md"), *(ROOT / "mcp_bridge").glob("*.md")]
)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_FILE = re.compile(
    r"`((?:bin|config|projects|agent|mcp_adapter|mcp_bridge|controller_client|quickstart|tests|benchmarks|docs|\.ci)/[\w./-]*)`"
)
_VARIABLE = re.compile(r'environment\.(?:text|items|number|seconds|flag|path)\(\s*"([A-Z_]+)"')


def anchors(document: Path) -> set[str]:
    """As they are made from headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target, anchor in _LINK.findall(document.read_text()):
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (anchor and path.suffix == ".md" and anchor[1:] not in anchors(path)):
            broken.append(target + anchor)
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(document: Path) -> None:
    named = {name for name in _FILE.findall(document.read_text()) if "<" not in name and "NNNN" not in name}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def variables() -> set[str]:
    """Environment variables the server reads."""
    found: set[str] = set()
    for path in (ROOT / "config").rglob("*.py"):
        found |= set(_VARIABLE.findall(path.read_text()))
    return found


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    table = (ROOT / "docs/reference/settings.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE))
    assert documented == variables()


def test_every_key_of_a_policy_file_is_documented_and_nothing_else_is() -> None:
    documented = set(re.findall(r"^\| `([a-z_.]+)`", (ROOT / "docs/reference/policy-file.md").read_text(), re.MULTILINE))
    assert documented == {f"{table}.{key}" for table, keys in policy_file.KNOWN.items() for key in keys}


def error_codes() -> Iterator[str]:
    """Every stable code a caller can meet."""
    todo: list[type[ControllerActionError]] = [ControllerActionError]
    while todo:
        kind = todo.pop()
        if kind.__module__ in {module.__name__ for module in (account_errors, errors, monitor_errors, run_errors)}:
            yield kind.code
        todo += kind.__subclasses__()
    for kind in (errors.InputRefused, errors.StartFailed):
        yield from kind.HINTS


def test_every_error_code_is_documented_and_nothing_else_is() -> None:
    table = (ROOT / "docs/reference/errors.md").read_text()
    assert set(re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE)) == set(error_codes())


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    decisions = [path.name for path in (ROOT / "docs/adr").glob("[0-9]*.md")]
    assert [name for name in decisions if f"({name})" not in index] == []
    assert decisions


def test_the_first_message_names_stay_as_callers_of_the_protocol_know_them() -> None:
    kept = {"START_INTERACTIVE_CMD", "INTERACTIVE_OUTPUT", "SEND_INPUT", "INTERACTIVE_CMD_DONE", "TERMINATE_CMD"}
    tags = {kind.__struct_config__.tag for kind in messages.Message.__subclasses__()}
    assert kept <= tags
