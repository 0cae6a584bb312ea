"""A digest as tools show it."""

from pydantic import Field

from projects.tools.base import ToolOutput


class DigestLineOutput(ToolOutput):
    """A line, and where it begins."""

    offset: int
    text: str


class DigestOutput(ToolOutput):
    """What came since the last look, in short; by fixed rules."""

    from_offset: int
    to_offset: int
    bytes: int
    skipped_bytes: int = Field(description="The oldest of it that were lost, or too many to look at.")
    lines: int
    error_count: int
    errors: list[DigestLineOutput] = Field(description="The newest lines that look like errors.")
    warning_count: int
    warnings: list[DigestLineOutput]
    progress: list[DigestLineOutput] = Field(description="Progress bars, each in its last state.")
    last_lines: list[str]
    prompt: str | None = Field(description="A last line without an end: what a prompt looks like.")
