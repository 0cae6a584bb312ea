"""Searches and digests of monitored logs and of output, through the official client."""

import uuid

from tests.support.mcp.client import Caller
from tests.support.mcp.monitors import code_of, new_log, started
from tests.support.stack import Stack


async def test_a_recording_of_script_is_followed_and_searched(stack: Stack, caller: Caller) -> None:
    log = new_log(stack)
    session_id = await started(caller, log)
    command = (
        "script -qefc 'for i in $(seq 1 200); do echo number $i; done; echo Error: disk "
        f'full; printf "Go on? "\' {log}'
    )
    await caller.call("execute_command", command=command)
    content = ""
    # Raw: offsets of a search are those of the file's bytes.
    while (answer := await caller.call("get_session_updates", session_id=session_id, view="raw"))[
        "new_content"
    ]:
        content += answer["new_content"]
    assert [line for line in content.splitlines() if line.startswith("number")] == [
        f"number {number}" for number in range(1, 201)
    ]
    found = await caller.call(
        "search_session_output", pattern="^number 1?50$", session_id=session_id, context_lines=1
    )
    assert [(hit["line"], hit["before"], hit["after"]) for hit in found["hits"]] == [
        ("number 50", ["number 49"], ["number 51"]),
        ("number 150", ["number 149"], ["number 151"]),
    ]
    assert content.encode()[found["hits"][0]["offset"] :].startswith(b"number 50")


async def test_digests_tell_what_came_since_the_last_look(stack: Stack, caller: Caller) -> None:
    lines = [
        *(f"step {number}" for number in range(3000)),
        "10%\r50%\r100%",
        "WARNING: slow",
        "0 errors",
        "error: no space",
        "Continue? ",
    ]
    session_id = await started(caller, new_log(stack, "\n".join(lines)))
    answer = await caller.call("get_session_updates", session_id=session_id, view="digest")
    digest = answer["digest"]
    assert (
        answer["new_content"],
        digest["lines"],
        digest["error_count"],
        digest["warning_count"],
    ) == ("", 3005, 1, 1)
    assert [
        line["text"] for line in digest["errors"] + digest["warnings"] + digest["progress"]
    ] == [
        "error: no space",
        "WARNING: slow",
        "100%",
    ]
    assert digest["prompt"] == "Continue?"
    ended = await caller.call("execute_command", command="echo one; echo fatal: two")
    looks = [
        await caller.call("get_session", session_id=ended["session_id"], digest=True)
        for _ in range(2)
    ]
    assert [(look["digest"]["lines"], look["digest"]["error_count"]) for look in looks] == [
        (2, 1),
        (0, 0),
    ]
    again = await caller.call("get_session", session_id=ended["session_id"], digest_from=0)
    assert again["digest"]["last_lines"] == ["one", "fatal: two"]


async def test_a_search_covers_the_project_and_stops_where_it_can_go_on(
    stack: Stack, caller: Caller
) -> None:
    word = uuid.uuid4().hex
    first = await caller.call(
        "execute_command", command=f"for i in 1 2 3 4 5; do echo {word} $i; done"
    )
    await caller.call("execute_command", command=f"echo {word} err >&2")
    found = await caller.call("search_session_output", pattern=f"{word} ")
    assert [hit["line"].split()[1] for hit in found["hits"]] == ["err", "1", "2", "3", "4", "5"]
    assert found["hits"][0]["stream"] == "stderr"
    whole = await caller.call("search_session_output", pattern=word, session_id=first["session_id"])
    assert (len(whole["hits"]), whole["stopped_by"]) == (5, None)
    some = await caller.call(
        "search_session_output",
        pattern=word,
        session_id=first["session_id"],
        max_results=2,
        context_lines=0,
    )
    assert (len(some["hits"]), some["stopped_by"]) == (2, "results")
    rest = await caller.call("search_session_output", pattern=word, context_lines=0, **some["next"])
    assert [hit["line"].split()[1] for hit in rest["hits"]] == ["3", "4", "5"]
    assert await code_of(caller, "search_session_output", pattern="(") == "INVALID_PATTERN"
    assert (
        await code_of(caller, "search_session_output", pattern="x", session_id=str(uuid.uuid4()))
        == "SESSION_NOT_FOUND"
    )
