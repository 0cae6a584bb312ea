"""Sets of tools narrow what a caller sees and calls; they never widen what its token allows."""

from uuid import uuid4

import pytest

from projects.accounts.authentication import AGENT_SCOPES, SCOPES, Caller
from projects.accounts.toolsets import TOOLSETS
from projects.errors.calls import UnknownTool, UnknownToolset
from projects.tools.registry import ALL_TOOLS
from projects.tools.toolsets import check_toolsets, tool_for, tools_for


def _caller(*scopes: str, toolsets: tuple[str, ...] = ()) -> Caller:
    return Caller(uuid4(), "x", frozenset(scopes or AGENT_SCOPES), toolsets=toolsets)


def _names(caller: Caller, *requested: str) -> list[str]:
    return [tool.name for tool in tools_for(caller, requested)]


def test_every_tool_is_in_a_family_toolset_and_toolsets_name_real_tools() -> None:
    families = frozenset().union(
        *(names for toolset, names in TOOLSETS.items() if toolset not in {"all", "agent"})
    )
    assert families == TOOLSETS["all"] == {tool.name for tool in ALL_TOOLS}


def test_the_default_is_everything_in_the_order_of_the_registry() -> None:
    assert (
        _names(_caller(*SCOPES))
        == [tool.name for tool in ALL_TOOLS]
        == _names(_caller(*SCOPES), "all")
    )


def test_the_set_made_for_models_is_small() -> None:
    assert _names(_caller(), "agent") == [
        "execute_command",
        "start_interactive_command",
        "send_command_input",
        "read_session_output",
        "list_sessions",
        "list_controllers",
    ]


def test_several_sets_add_up_in_one_order_however_they_are_named() -> None:
    assert _names(_caller(), "jobs", "oneshot") == _names(_caller(), "oneshot", "jobs")
    assert _names(_caller(), "jobs", "oneshot") == [
        "execute_command",
        "run_command",
        "query_command_status",
    ]


def test_a_request_narrows_the_sets_of_its_token_and_never_widens_them() -> None:
    caller = _caller(toolsets=("agent",))
    assert _names(caller) == _names(_caller(), "agent")
    assert _names(caller, "sessions") == [
        "read_session_output",
        "list_sessions",
        "list_controllers",
    ]
    assert _names(caller, "jobs") == []
    assert _names(_caller(toolsets=("a set that is gone",))) == []


def test_only_what_the_scopes_may_use_is_shown() -> None:
    assert _names(_caller("session:read"), "interactive") == [
        "send_command_input",
        "read_session_output",
        "get_session",
        "list_sessions",
        "list_controllers",
    ]
    assert _names(_caller("monitor:delete"), "interactive") == []
    assert _names(_caller("admin:*")) == [tool.name for tool in ALL_TOOLS]


def test_a_tool_outside_the_toolsets_is_unknown_and_the_hint_names_others() -> None:
    assert tool_for("run_command", _caller()).name == "run_command"
    with pytest.raises(UnknownTool) as unknown:
        tool_for("run_command", _caller(), ("agent",))
    assert "list_sessions" in unknown.value.hint
    assert "run_command" not in unknown.value.hint


def test_an_unknown_set_is_refused_with_the_names_of_those_that_exist() -> None:
    check_toolsets(tuple(TOOLSETS))
    with pytest.raises(UnknownToolset) as unknown:
        check_toolsets(("agent", "interactiv"))
    assert all(name in unknown.value.hint for name in TOOLSETS)
