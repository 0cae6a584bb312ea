"""The tools as they are published: one JSON file each, and the reference page.

``python -m tests.contract.tools`` writes both.

A change of a schema, a description, a scope or an error code is then a visible diff.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from projects.errors.base import COMMON_CODES
from projects.errors.shown_tools import TOOL_NAMES
from projects.tools.base import Tool
from projects.tools.guidance import instructions
from projects.tools.registry import ALL_TOOLS

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parents[2] / "docs" / "reference" / "tools.md"


def published(tool: Tool[Any]) -> str:
    """Everything about a tool that callers depend on."""
    contract = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.full_description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "scopes": list(tool.scopes),
        "codes": list(tool.codes),
        "annotations": {
            "read_only": tool.is_read_only,
            "destructive": tool.is_destructive,
            "idempotent": tool.is_idempotent,
        },
    }
    return json.dumps(contract, indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """The text of ``docs/reference/tools.md``."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tools"
    yield ""
    yield (
        "Every tool with its arguments and results, as the server offers it at `/mcp`. This page "
        "is generated from the registry in `projects/tools/` by `python -m tests.contract.tools`; "
        "a test compares the two."
    )
    yield ""
    yield (
        "A result comes twice: as structured content, and as JSON text with the same values. An "
        "error has the body described in [errors](errors.md). Besides its own codes, every tool "
        f"may answer with {_listed(COMMON_CODES)}."
    )
    yield ""
    yield "A client shows its model this text, before the model chooses a tool:"
    yield ""
    yield f"> {instructions(TOOL_NAMES)}"
    yield ""
    yield (
        "The texts on this page are for a caller that has all tools. A caller that has fewer "
        "sees no text that names a tool it lacks."
    )
    yield ""
    yield (
        "A list by pages has no page that ends among rows of the same time: it goes on to the last "
        "of them, and can pass `limit` by that."
    )
    for tool in ALL_TOOLS:
        yield from _tool_lines(tool)


def _tool_lines(tool: Tool[Any]) -> Iterator[str]:
    yield ""
    yield f"## {tool.name}"
    yield ""
    yield tool.full_description
    yield ""
    yield (
        f"Scopes: {_listed(tool.scopes)}. Errors: {_listed(tool.codes) or 'only the common ones'}."
    )
    properties = tool.input_schema.get("properties", {})
    if properties:
        yield ""
        yield "| Argument | Type | Default | Means |"
        yield "|---|---|---|---|"
        required = tool.input_schema.get("required", [])
        for name, schema in properties.items():
            default = "required" if name in required else f"`{json.dumps(schema.get('default'))}`"
            yield f"| `{name}` | {_type(schema)} | {default} | {schema.get('description', '')} |"
    yield ""
    yield "| Result | Type | Means |"
    yield "|---|---|---|"
    for name, schema in tool.output_schema["properties"].items():
        yield f"| `{name}` | {_type(schema)} | {schema.get('description', '')} |"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " / ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "any"))


def write() -> None:
    """Brings the files and the page up to date."""
    for stale in FOLDER.glob("*.json"):
        stale.unlink()
    for tool in ALL_TOOLS:
        (FOLDER / f"{tool.name}.json").write_text(published(tool))
    PAGE.write_text(page())
