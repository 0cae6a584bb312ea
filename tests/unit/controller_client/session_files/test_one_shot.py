"""A RUN_COMMAND starts and ends like other sessions, but for its pipes, timeout and duration."""

from controller_client.protocol.messages import (
    CommandResult,
    InteractiveCmdDone,
    ResourceLimits,
    RunCommand,
    StartInteractiveCmd,
)
from controller_client.session_files.one_shot import as_end, as_start

RUN = RunCommand(
    seq=4,
    session_id="s",
    command="sort",
    input=b"b\na\n",
    cwd="/srv",
    env={"A": "1"},
    timeout_seconds=2.5,
    limits=ResourceLimits(processes=3),
)


def test_a_one_shot_starts_on_pipes_and_its_timeout_is_its_lifetime() -> None:
    start = as_start(RUN)
    assert (start.io_mode, start.stdin, start.stdin_data, start.lifetime_seconds) == (
        "pipe",
        "closed",
        b"b\na\n",
        2.5,
    )
    assert (start.seq, start.session_id, start.command, start.cwd, start.env, start.limits) == (
        4,
        "s",
        "sort",
        "/srv",
        {"A": "1"},
        ResourceLimits(processes=3),
    )


def test_every_field_that_a_one_shot_and_a_start_share_is_kept() -> None:
    shared = set(RunCommand.__struct_fields__) & set(StartInteractiveCmd.__struct_fields__)
    assert {name: getattr(as_start(RUN), name) for name in shared} == {
        name: getattr(RUN, name) for name in shared
    }


def test_a_one_shot_result_says_its_duration_and_whether_it_timed_out() -> None:
    done = InteractiveCmdDone(
        session_id="s",
        end_reason="timed_out",
        signal="SIGTERM",
        notes=["x"],
        duration_seconds=2.5006,
    )
    result = as_end(RUN, done)
    assert isinstance(result, CommandResult)
    assert (result.timed_out, result.duration_ms, result.signal, result.notes, result.id) == (
        True,
        2501,
        "SIGTERM",
        ["x"],
        done.id,
    )


def test_the_messages_of_other_sessions_stay_as_they_are() -> None:
    start, done = (
        StartInteractiveCmd(seq=1, session_id="s"),
        InteractiveCmdDone(session_id="s", end_reason="exited", exit_code=0),
    )
    assert as_start(start) is start
    assert as_end(start, done) is done
    assert as_end(None, done) is done
