"""RUN_COMMAND as the session it is."""

from controller_client.one_shot import as_end, as_start
from controller_client.protocol.messages import CommandResult, InteractiveCmdDone, ResourceLimits, RunCommand, StartInteractiveCmd

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


def test_a_one_shot_starts_on_pipes_with_its_input_closed_and_its_timeout_for_a_lifetime() -> None:
    start = as_start(RUN)
    assert (start.io_mode, start.stdin, start.stdin_data, start.lifetime_seconds) == ("pipe", "closed", b"b\na\n", 2.5)
    assert (start.seq, start.session_id, start.command, start.cwd, start.env, start.limits) == (
        4,
        "s",
        "sort",
        "/srv",
        {"A": "1"},
        ResourceLimits(processes=3),
    )


def test_what_every_field_that_both_have_says_is_kept() -> None:
    shared = set(RunCommand.__struct_fields__) & set(StartInteractiveCmd.__struct_fields__)
    assert {name: getattr(as_start(RUN), name) for name in shared} == {name: getattr(RUN, name) for name in shared}


def test_its_end_is_a_result_that_says_how_long_it_took_and_whether_it_was_too_long() -> None:
    done = InteractiveCmdDone(session_id="s", end_reason="timed_out", signal="SIGTERM", notes=["x"], duration_seconds=2.5006)
    result = as_end(RUN, done)
    assert isinstance(result, CommandResult)
    assert (result.timed_out, result.duration_ms, result.signal, result.notes, result.id) == (True, 2501, "SIGTERM", ["x"], done.id)


def test_any_other_session_starts_and_ends_as_it_says() -> None:
    start, done = StartInteractiveCmd(seq=1, session_id="s"), InteractiveCmdDone(session_id="s", end_reason="exited", exit_code=0)
    assert as_start(start) is start
    assert as_end(start, done) is done
    assert as_end(None, done) is done
