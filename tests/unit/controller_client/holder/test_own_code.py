"""A holder runs code of one version only: it outlives an upgrade that replaces its files."""

import ast
import subprocess
import sys
from pathlib import Path

_LOADED = """
import sys
import controller_client.holder.fork_server
for name, module in sorted(sys.modules.items()):
    if name.startswith("controller_client.") and module.__file__:
        print(module.__file__)
"""


def _late_imports(file: Path) -> list[str]:
    """Return the modules of this package that a function of the file imports when it is called."""
    return [
        f"{file.name}: {module}"
        for function in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        for module in _imported(node)
        if module.split(".")[0] == "controller_client"
    ]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_a_holder_has_its_own_code_before_it_is_forked() -> None:
    ran = subprocess.run([sys.executable, "-c", _LOADED], stdout=subprocess.PIPE, check=True)
    files = [Path(line) for line in ran.stdout.decode().splitlines()]
    assert {"mask.py", "session.py", "link.py"} <= {file.name for file in files}
    assert [late for file in files for late in _late_imports(file)] == []
