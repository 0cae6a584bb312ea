"""What callers depend on changes on purpose only.

After a change: ``python -m tests.contract.tools``, and read the diff.
"""

from typing import Any

import pytest

from projects.tools.base import Tool
from projects.tools.registry import ALL_TOOLS
from tests.contract.tools.reference import FOLDER, PAGE, page, published


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_published_as_it_was(tool: Tool[Any]) -> None:
    assert published(tool) == (FOLDER / f"{tool.name}.json").read_text()


def test_no_published_tool_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {tool.name for tool in ALL_TOOLS}


def test_the_reference_page_is_in_step() -> None:
    assert PAGE.read_text() == page()
