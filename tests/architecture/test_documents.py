"""The documents agree with the code."""

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class

from config.settings import environment
from controller_client.policy import file as policy_file
from controller_client.protocol import messages
from controller_client.server_link import daemon
from projects.conf.setting import Setting
from projects.errors.base import ControllerActionError
from projects.errors.commands import StartFailed
from projects.errors.inputs import InputRefused

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "controller_client").glob("*.md"),
        *(ROOT / "mcp_bridge").glob("*.md"),
    ]
)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_FILE = re.compile(
    r"`((?:bin|config|console|projects|agent|backup|mcp_adapter|mcp_bridge|controller_client|quickstart|tests|benchmarks|chaos|deploy|docs|\.ci)/[\w./-]*)`"
)


def anchors(document: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target, anchor in _LINK.findall(document.read_text()):
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (
            anchor and path.suffix == ".md" and anchor[1:] not in anchors(path)
        ):
            broken.append(target + anchor)
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(document: Path) -> None:
    named = {
        name
        for name in _FILE.findall(document.read_text())
        if "<" not in name and "NNNN" not in name
    }
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs/README.md"
    named = {(index.parent / target).resolve() for target, _ in _LINK.findall(index.read_text())}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"} - {index}
    assert sorted(str(page) for page in pages - named) == []


def test_a_how_to_begins_with_what_the_reader_wants() -> None:
    pages = sorted((ROOT / "docs/howto").glob("*.md"))
    openings = {page.name: page.read_text().split("\n\n")[1] for page in pages}
    assert [name for name, opening in openings.items() if not opening.startswith("You want ")] == []


def test_a_command_of_manage_py_is_spelled_in_one_way() -> None:
    other = re.compile(r"^(?!#).*(?<!\.venv/bin/python )\bmanage\.py [a-z]", re.MULTILINE)
    pages = [page for page in DOCUMENTS if page.name != "CHANGELOG.md"]
    found = {str(page.relative_to(ROOT)): other.findall(page.read_text()) for page in pages}
    assert {name: lines for name, lines in found.items() if lines} == {}


def _row(setting: Setting[object]) -> str:
    """The row of the reference page that a declaration stands for."""
    default = setting.default
    if isinstance(default, bool):
        shown = str(default).lower()
    elif isinstance(default, int | float):
        shown = str(default).removesuffix(".0")
    else:
        shown = f"`{default}`"
    return f"| `{setting.variable}` | {setting.shown or shown} | {setting.doc} |"


def test_every_setting_is_documented_as_it_is_declared() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [_row(setting) for setting in environment.declared]


def test_every_key_of_a_policy_file_is_documented_and_nothing_else_is() -> None:
    documented = set(
        re.findall(
            r"^\| `([a-z_.]+)`", (ROOT / "docs/reference/policy-file.md").read_text(), re.MULTILINE
        )
    )
    assert documented == {
        f"{table}.{key}" for table, keys in policy_file.KNOWN.items() for key in keys
    }


def error_codes() -> Iterator[str]:
    """Every stable error code that a caller can meet."""
    for path in (
        *ROOT.glob("projects/errors/*.py"),
        *ROOT.glob("projects/*/errors.py"),
        ROOT / "agent/errors.py",
    ):
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    todo: list[type[ControllerActionError]] = [ControllerActionError]
    while todo:
        kind = todo.pop()
        if not kind.__module__.startswith("tests."):
            yield kind.code
        todo += kind.__subclasses__()
    for kind in (InputRefused, StartFailed):
        yield from kind.HINTS


def test_every_error_code_is_documented_and_nothing_else_is() -> None:
    table = (ROOT / "docs/reference/errors.md").read_text()
    assert set(re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE)) == set(error_codes())


def test_a_status_without_a_code_is_documented() -> None:
    table = (ROOT / "docs/reference/errors.md").read_text()
    sources = [*(ROOT / "mcp_adapter").rglob("*.py"), *(ROOT / "config").glob("*.py")]
    sources.append(ROOT / "projects/enrolment/endpoint.py")
    found = r"(?:send, |status=|^[A-Z]+ = )(4\d\d)\b"
    answered = {
        status for path in sources for status in re.findall(found, path.read_text(), re.MULTILINE)
    }
    assert {"403", "405", "421"} <= answered
    # The library of the protocol answers 406 itself.
    documented = set(re.findall(r"^\| (4\d\d) \|", table, re.MULTILINE))
    assert answered | {"406"} <= documented


def test_every_metric_is_documented_and_nothing_else_is() -> None:
    served = set(
        re.findall(r'"(holdline_[a-z_]+)"', (ROOT / "projects/process/metrics.py").read_text())
    )
    assert (
        set(re.findall(r"`(holdline_[a-z_]+)`", (ROOT / "docs/howto/operate.md").read_text()))
        == served
    )


def test_every_permission_of_ours_is_documented() -> None:
    page = (ROOT / "docs/howto/administer.md").read_text()
    ours = set()
    for path in [*(ROOT / "projects/models").glob("*.py"), ROOT / "agent/models.py"]:
        for declared in re.findall(r"permissions = [(\[](.*?)[)\]]\n", path.read_text(), re.DOTALL):
            ours |= set(re.findall(r'\("([a-z_]+)", "', declared))
    assert {"take_over_session", "control_run"} <= ours
    assert [name for name in sorted(ours) if f".{name}`" not in page] == []


def test_every_command_of_manage_py_is_named_somewhere() -> None:
    pages = "\n".join(page.read_text() for page in DOCUMENTS if page.name != "CHANGELOG.md")
    commands = [
        path.stem
        for app in ("projects", "agent", "backup", "console")
        for path in (ROOT / app / "management/commands").glob("[a-z]*.py")
    ]
    assert [name for name in sorted(commands) if not re.search(rf"\b{name}\b", pages)] == []


def _manage_lines() -> Iterator[tuple[str, str]]:
    """Each command of ``manage.py`` that a page spells, with the words behind it."""
    spelled = re.compile(r"manage\.py ([a-z_]+)([^`\n|&#]*)")
    for page in DOCUMENTS:
        # A row of the page of runs leaves ``manage.py`` out.
        rows = r"^\| `((?:run_agent|agent_runs|answer_approval)\b[^`]*)`"
        left_out = re.findall(rows, page.read_text(), re.MULTILINE)
        lines = [f"manage.py {row}" for row in left_out]
        if page.name != "CHANGELOG.md":
            yield from spelled.findall("\n".join([page.read_text(), *lines]))


def _options_of(command: str) -> set[str]:
    app = get_commands()[command]
    loaded = load_command_class(app, command) if isinstance(app, str) else app
    usage = loaded.create_parser("manage.py", command).format_help()
    return set(re.findall(r"--[a-z][a-z-]*", usage))


def test_every_command_and_option_of_manage_py_that_is_named_exists() -> None:
    lines = list(_manage_lines())
    prose = {"as", "is"}
    unknown = {name for name, _ in lines} - set(get_commands()) - prose
    assert unknown == set()
    assert len(lines) > 50
    wrong = [
        f"{name} {option}"
        for name, words in lines
        if name not in prose
        for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", words)) - _options_of(name)
    ]
    assert wrong == []


def test_every_permission_that_is_named_exists() -> None:
    named = re.compile(r"`(?:projects|agent|console|auth)\.([a-z]+_[a-z_]+)`")
    known = {
        name
        for model in apps.get_models()
        for name in (
            *(f"{action}_{model._meta.model_name}" for action in model._meta.default_permissions),
            *(name for name, _ in model._meta.permissions),
        )
    }
    found = {page.name: set(named.findall(page.read_text())) for page in DOCUMENTS}
    assert {name: names - known for name, names in found.items() if names - known} == {}
    assert len(found["administer.md"]) > 10


def test_every_option_of_the_daemon_is_documented() -> None:
    page = (ROOT / "docs/howto/run-a-controller.md").read_text()
    options = set(
        re.findall(
            r'add_argument\(\s*"(--[a-z-]+)"', (ROOT / "controller_client/cli.py").read_text()
        )
    )
    assert [option for option in sorted(options - {"--version"}) if option not in page] == []


def test_examples_use_public_modules_alone() -> None:
    fenced = re.compile(r"```python\n(.*?)```", re.DOTALL)
    examples = [code for page in DOCUMENTS for code in fenced.findall(page.read_text())]
    imported = re.findall(r"^\s*(?:from|import) (.+)$", "\n".join(examples), re.MULTILINE)
    assert imported
    assert [names for names in imported if re.search(r"(?<!\w)_", names)] == []


def test_the_libraries_of_the_daemon_are_named() -> None:
    page = (ROOT / "docs/howto/run-a-controller.md").read_text()
    (named,) = re.findall(r"This also installs (.*?)\. It installs no Django", page, re.DOTALL)
    project = tomllib.loads((ROOT / "controller_client/pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=~]", line)[0] for line in project["dependencies"]}
    alone = re.sub(r"\(.*?\)", "", named, flags=re.DOTALL)
    assert set(re.findall(r"[a-z]+(?:-[a-z]+)*", alone)) - {"and"} == needed


def test_every_capability_of_a_daemon_is_documented() -> None:
    page = (ROOT / "docs/reference/protocol.md").read_text()
    (row,) = re.findall(
        r"^\| `capabilities` \| list of string \| required \| (.*) \|$", page, re.MULTILINE
    )
    assert set(re.findall(r"`([a-z_]+)`", row)) == set(daemon.CAPABILITIES)


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    decisions = [path.name for path in (ROOT / "docs/adr").glob("[0-9]*.md")]
    assert [name for name in decisions if f"({name})" not in index] == []
    assert decisions


def test_the_names_of_the_first_messages_never_change() -> None:
    kept = {
        "START_INTERACTIVE_CMD",
        "INTERACTIVE_OUTPUT",
        "SEND_INPUT",
        "INTERACTIVE_CMD_DONE",
        "TERMINATE_CMD",
    }
    tags = {kind.__struct_config__.tag for kind in get_args(messages.AnyMessage)}
    assert kept <= tags


@pytest.mark.parametrize("container", ["projects", "controller_client"])
def test_the_map_shows_the_floors_of_the_contracts(container: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (
        contract["layers"] for contract in contracts if contract.get("containers") == [container]
    )
    page = (ROOT / "docs/architecture.md").read_text().splitlines()
    drawn = [{cell.strip() for cell in line.split("│")} for line in page if line.startswith("│")]
    floors = [{box.strip() for box in layer.split("|")} for layer in layers]
    rows = [row for row in drawn if any(floor <= row for floor in floors)]
    assert len(rows) == len(floors)
    assert all(floor <= row for floor, row in zip(floors, rows, strict=True))
