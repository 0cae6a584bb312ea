"""Nothing in the product undoes a control of the threat model.

ruff's ``S`` rules (bandit's) hold for the whole product. The rules here are those that ruff does
not have: names that switch HTML escaping off, exempt from CSRF, unpickle, or decode without types.
They are checked on the syntax tree.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_layout import ROOT, SOURCES, modules

# Each name with the control that it would undo.
BANNED_NAMES = {
    "mark_safe": "X22: pages escape everything",
    "SafeString": "X22",
    "SafeText": "X22",
    "format_html": "X22: a template does the same and cannot be given a finished string",
    "format_html_join": "X22",
    "html_safe": "X22",
    "csrf_exempt": "X10: every change through a page carries a token",
    "xframe_options_exempt": "X10: no page is framed",
    "RawSQL": "X20: nothing a peer sent becomes a statement",
    "_create_unverified_context": "X33: certificates are verified",
    "CERT_NONE": "X33",
    "mktemp": "X36: no predictable names",
}
BANNED_MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "yaml",
    "xml",
    "cPickle",
    "telnetlib",
    "imp",
}
BANNED_CALLS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
}


# Each exception with the reason why it is harmless.
ALLOWED = {
    (
        "projects/enrolment/endpoint.py",
        "csrf_exempt",
    ): "called by a daemon with a code of its own; no cookie is looked at"
}


def _is_allowed(finding: str) -> bool:
    return any(finding.startswith(f"{path}:") and name in finding for path, name in ALLOWED)


def _findings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        name = (
            node.attr
            if isinstance(node, ast.Attribute)
            else node.id
            if isinstance(node, ast.Name)
            else None
        )
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = {alias.name for alias in node.names}
            roots = (
                {(node.module or "").split(".")[0]}
                if isinstance(node, ast.ImportFrom)
                else {each.split(".")[0] for each in names}
            )
            for found in sorted((roots & BANNED_MODULES) | (names & set(BANNED_NAMES))):
                yield f"{path}:{node.lineno} imports {found}"
        elif name in BANNED_NAMES:
            yield f"{path}:{node.lineno} {name}"
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) in BANNED_CALLS:
                yield f"{path}:{node.lineno} calls {ast.unparse(node.func)}"
            for keyword in node.keywords:
                is_set = isinstance(keyword.value, ast.Constant) and keyword.value.value
                if (keyword.arg == "shell" and is_set) or (
                    keyword.arg == "verify" and getattr(keyword.value, "value", None) is False
                ):
                    yield f"{path}:{node.lineno} {keyword.arg}={ast.unparse(keyword.value)}"


def test_nothing_in_the_product_undoes_a_control() -> None:
    assert [
        finding for path in modules() for finding in _findings(path) if not _is_allowed(finding)
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from django.utils.safestring import mark_safe",
        "html.format_html(x)",
        "import pickle",
        "from xml.dom import minidom",
        "eval(x)",
        "subprocess.run(x, shell=True)",
        "httpx.get(url, verify=False)",
        "@csrf_exempt\ndef view(): ...",
    ],
)
def test_each_dangerous_construct_would_be_found(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text(text)
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert list(_findings(Path("bad.py")))


def test_no_template_switches_escaping_off() -> None:
    unsafe = re.compile(
        r"\|\s*safe(seq)?\b|autoescape\s+off|<script(?![^>]*\bsrc=)|\bon\w+\s*=\s*[\"']|javascript:"
    )
    found = {}
    for package in SOURCES:
        for path in sorted((ROOT / package).rglob("*.html")):
            if lines := unsafe.findall(path.read_text()):
                found[str(path)] = lines
    assert found == {}


def test_bandits_rules_are_on_for_the_whole_product() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in configuration["select"]
    # These two rules only report that a program is started, and starting programs is the product.
    assert {
        rule for rule in configuration["ignore"] if rule.startswith("S") and rule[1:].isdigit()
    } == {"S603", "S607"}
    loose = {
        path
        for path, rules in configuration["per-file-ignores"].items()
        if any(rule.startswith("S") and rule != "SLF" for rule in rules)
    }
    assert loose <= {"tests/**", "benchmarks/**", "chaos/**"}
    products = re.search(r"^products=\((.*)\)$", (ROOT / "bin/test").read_text(), re.MULTILINE)
    assert products
    assert sorted(products[1].split()) == sorted(SOURCES), "what bandit itself looks at"


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.txt")), ids=lambda path: path.name)
def test_every_dependency_is_pinned_and_hashed(lock: Path) -> None:
    entries = re.split(
        r"\n(?=[A-Za-z0-9])", re.sub(r"^#.*\n", "", lock.read_text(), flags=re.MULTILINE)
    )
    loose = [
        entry.splitlines()[0]
        for entry in entries
        if entry.strip()
        and not re.match(r"[\w.\[\],-]+==[^\s;]+.*--hash=sha256:[0-9a-f]{64}", entry, re.DOTALL)
    ]
    assert loose == []


def test_the_lowest_versions_of_the_threat_model_hold() -> None:
    lock = (ROOT / "requirements.txt").read_text()

    def version(name: str) -> tuple[int, ...]:
        found = re.search(rf"^{name}==([\d.]+)", lock, re.MULTILINE)
        assert found
        return tuple(map(int, found[1].split(".")))

    assert version("daphne") >= (4, 2, 2)
    assert version("django")[:2] == (5, 2)


def test_the_bill_of_materials_lists_the_lock_with_its_hashes() -> None:
    import json

    made = subprocess.run(
        [sys.executable, ROOT / "bin/sbom.py", "requirements.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    bill = json.loads(made.stdout)
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "holdline")
    locked = set(
        re.findall(
            r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;\\]+)",
            (ROOT / "requirements.txt").read_text(),
            re.MULTILINE,
        )
    )
    assert {(part["name"], part["version"]) for part in bill["components"]} == locked
    for part in bill["components"]:
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert part["hashes"][0]["alg"] == "SHA-256"
