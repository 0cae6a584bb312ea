"""The commands of ``docs/howto/install-a-server.md`` are valid; none of them is carried out."""

import re
import subprocess
from typing import Final

from django.core.management import get_commands

from tests.support.stack import PROJECT_ROOT

_GUIDE: Final = PROJECT_ROOT / "docs/howto/install-a-server.md"


def _blocks() -> list[tuple[str, str]]:
    """The guide's blocks of commands, each with the heading above it."""
    found, heading = [], ""
    for part in re.split(r"^(## .*)$", _GUIDE.read_text(), flags=re.MULTILINE):
        if part.startswith("## "):
            heading = part[3:]
        found += [
            (heading, block)
            for block in re.findall(r"^```\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        ]
    return found


def test_the_commands_of_the_guide_are_valid_and_what_they_name_is_there() -> None:
    script = "\n".join(text for _, text in _blocks())
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    ours = set(re.findall(r"^holdline-manage (\w+)", script, re.MULTILINE))
    assert ours
    assert ours <= get_commands().keys()
    for name in re.findall(r"\bdeploy/[\w.-]+", script):
        assert (PROJECT_ROOT / name).is_file()
