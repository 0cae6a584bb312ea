"""Prompts that a person picks in a client: how to drive an interactive command."""

from collections.abc import Awaitable, Callable
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
from projects.errors.calls import InvalidArgument

DRIVE: Final = "drive_interactive_command"
_NEEDED: Final = frozenset({"start_interactive_command", "send_command_input"})
_ARGUMENTS: Final = (
    PromptArgument(
        name="command",
        description="The command line, such as 'sudo apt-get install nginx'.",
        required=True,
    ),
    PromptArgument(
        name="goal",
        description="The goal, and how the questions of the command are to be answered.",
        required=False,
    ),
    PromptArgument(
        name="controller",
        description="Name of the host; may be left out when there is only one.",
        required=False,
    ),
)
_PROMPT: Final = Prompt(
    name=DRIVE,
    title="Drive an interactive command",
    description=(
        "Starts a command on a remote terminal and answers what it asks, one prompt at a "
        "time, to its end."
    ),
    arguments=list(_ARGUMENTS),
)


def prompts_listed_for(
    names: frozenset[str],
) -> Callable[[Context, PaginatedRequestParams | None], Awaitable[ListPromptsResult]]:
    """Lists the prompts that a caller who is shown the tools called ``names`` can follow."""

    async def list_prompts(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_PROMPT] if names >= _NEEDED else [])

    return list_prompts


def prompt_made_for(
    names: frozenset[str],
) -> Callable[[Context, GetPromptRequestParams], Awaitable[GetPromptResult]]:
    """Makes a prompt of its name and arguments."""

    async def get_prompt(_context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return _made(params, is_known=names >= _NEEDED)

    return get_prompt


def _made(params: GetPromptRequestParams, *, is_known: bool) -> GetPromptResult:
    if params.name != DRIVE or not is_known:
        known = DRIVE if is_known else "none, as it needs tools that are not in your toolsets"
        raise as_protocol_error(
            InvalidArgument([f"name: there is no such prompt; prompts: {known}"])
        )
    given = params.arguments or {}
    if unknown := set(given) - {argument.name for argument in _ARGUMENTS}:
        raise as_protocol_error(
            InvalidArgument(
                [f"{name[:64]}: there is no such argument" for name in sorted(unknown)[:8]]
            )
        )
    if not given.get("command", "").strip():
        raise as_protocol_error(InvalidArgument(["command: is required"]))
    text = "\n".join(_lines(given["command"], given.get("goal", ""), given.get("controller", "")))
    return GetPromptResult(
        description=_PROMPT.description,
        messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))],
    )


def _lines(command: str, goal: str, controller: str) -> list[str]:
    where = f" on the host {controller}" if controller else ""
    lines = [
        f"Run this command with start_interactive_command{where} and see it through to its end:",
        "",
        f"    {command}",
        "",
    ]
    if goal:
        lines += [f"What I want: {goal}", ""]
    return [
        *lines,
        (
            "Answer its prompts one at a time with send_command_input, as the descriptions of the "
            "two tools say."
        ),
        (
            "Ask me when a question cannot be answered from what I said. At the end tell me its "
            "exit code."
        ),
    ]
