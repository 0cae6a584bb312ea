"""What may be started and typed: refusals come before anything is written and never repeat a value."""

from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.limits import MAX_COMMAND_BYTES, MAX_INPUT_BYTES, MAX_KEYS
from controller_client.protocol.messages import StartInteractiveCmd
from projects import errors
from projects.authentication import Caller
from projects.policy import MAX_ENV_BYTES, check_start, input_bytes


def _check(command: str = "true", **changes: Any) -> None:
    arguments: dict[str, Any] = {"caller": None, "cwd": None, "env": {}, "rows": 24, "cols": 120, "lifetime_seconds": 300.0}
    check_start(command=command, **{**arguments, **changes})


@pytest.mark.parametrize("command", ["", " ", "\n\t "])
def test_there_must_be_something_to_run(command: str) -> None:
    with pytest.raises(errors.EmptyCommand):
        _check(command)


@pytest.mark.parametrize("changes", [{"command": "a\0b"}, {"cwd": "/\0"}, {"env": {"A": "\0"}}, {"env": {"A\0": ""}}])
def test_nul_is_refused_wherever_it_is(changes: dict[str, Any]) -> None:
    with pytest.raises(errors.CommandHasNul):
        _check(**changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rows": 0}, "rows"),
        ({"cols": 1001}, "cols"),
        ({"lifetime_seconds": 0.5}, "lifetime_seconds"),
        ({"lifetime_seconds": 1e9}, "lifetime_seconds"),
        ({"lifetime_seconds": float("nan")}, "lifetime_seconds"),
        ({"cwd": ""}, "cwd"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"env": {"A": "x" * MAX_ENV_BYTES}}, "env"),
        ({"command": "x" * (MAX_COMMAND_BYTES + 1)}, "command"),
        ({"command": "\x01" * MAX_COMMAND_BYTES}, "command"),
        ({"command": "\ud800"}, "surrogate"),
    ],
)
def test_what_is_out_of_bounds_is_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        _check(**changes)
    assert named in str(refused.value)


def test_what_is_allowed_fits_a_frame() -> None:
    command, env = "é" * (MAX_COMMAND_BYTES // 2), {"A": "x" * (MAX_ENV_BYTES - 1)}
    _check(command, env=env)
    encode(StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, env=env, cwd="/x"))


@pytest.mark.parametrize("scopes", [set(), {"shell:any"}, {"session:input", "session:read"}])
def test_a_start_needs_a_scope_of_its_own(scopes: set[str]) -> None:
    with pytest.raises(errors.ScopeMissing):
        _check(caller=Caller(uuid4(), "x", frozenset(scopes)))
    _check(caller=Caller(uuid4(), "x", frozenset({"session:start"})))


def test_input_is_text_or_keys_within_bounds() -> None:
    assert input_bytes("é\n", ()) == "é\n".encode()
    assert input_bytes("", ("ctrl-c", "alt-x", "f12", "ctrl-]")) == b""
    with pytest.raises(errors.InvalidArgument):
        input_bytes("x", ("enter",))
    with pytest.raises(errors.InvalidArgument):
        input_bytes("", ("enter",) * (MAX_KEYS + 1))
    with pytest.raises(errors.InvalidArgument):
        input_bytes("\udfff", ())
    with pytest.raises(errors.InputTooLarge):
        input_bytes("é" * (MAX_INPUT_BYTES // 2 + 1), ())


@pytest.mark.parametrize("key", ["", "hyper-x", "enter ", "ctrl-1", "alt-", "alt-xy", "\n"])
def test_an_unknown_key_is_refused_with_the_known_ones(key: str) -> None:
    with pytest.raises(errors.UnknownKey) as refused:
        input_bytes("", ("enter", key))
    assert "page-up" in refused.value.hint
    assert "ctrl-a" in refused.value.hint
