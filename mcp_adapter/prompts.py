"""Prompts that a person picks in a client: how to drive an interactive command."""

from typing import Final

from mcp_types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from mcp_adapter.callers import Context, as_protocol_error
from projects.errors import InvalidArgument
from projects.tools import guidance

DRIVE: Final = "drive_interactive_command"
_ARGUMENTS: Final = (
    PromptArgument(name="command", description="The command line, such as 'sudo apt-get install nginx'.", required=True),
    PromptArgument(name="goal", description="What is to be reached, and how its questions are to be answered.", required=False),
    PromptArgument(name="controller", description="Name of the host; may be left out when there is only one.", required=False),
)
_PROMPT: Final = Prompt(
    name=DRIVE,
    title="Drive an interactive command",
    description="Starts a command on a remote terminal and answers what it asks, one prompt at a time, to its end.",
    arguments=list(_ARGUMENTS),
)


async def list_prompts(_context: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
    """The same for every caller."""
    return ListPromptsResult(prompts=[_PROMPT])


async def get_prompt(_context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    """The prompt with its arguments filled in."""
    if params.name != DRIVE:
        raise as_protocol_error(InvalidArgument([f"name: the prompts are {DRIVE}"]))
    given = params.arguments or {}
    if unknown := set(given) - {argument.name for argument in _ARGUMENTS}:
        raise as_protocol_error(InvalidArgument([f"{name[:64]}: there is no such argument" for name in sorted(unknown)[:8]]))
    if not given.get("command", "").strip():
        raise as_protocol_error(InvalidArgument(["command: is required"]))
    text = "\n".join(_lines(given["command"], given.get("goal", ""), given.get("controller", "")))
    return GetPromptResult(
        description=_PROMPT.description, messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))]
    )


def _lines(command: str, goal: str, controller: str) -> list[str]:
    where = f" on the host {controller}" if controller else ""
    lines = [f"Run this command with start_interactive_command{where} and see it through to its end:", "", f"    {command}", ""]
    if goal:
        lines += [f"What I want: {goal}", ""]
    habits = (guidance.PROMPTS, guidance.WAITING, guidance.SECRETS, guidance.ENDING, guidance.UNTRUSTED)
    return [
        *lines,
        *(f"- {habit}" for habit in habits),
        "",
        "Ask me when a question cannot be answered from what I said. At the end tell me its exit code.",
    ]
