"""Refused starts and inputs: nothing is written before, and no value is repeated."""

from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.limits import MAX_COMMAND_BYTES, MAX_INPUT_BYTES, MAX_KEYS
from controller_client.protocol.messages import StartInteractiveCmd
from projects.accounts.authentication import Caller
from projects.errors.access import ScopeMissing
from projects.errors.calls import InvalidArgument
from projects.errors.commands import CommandHasNul, EmptyCommand
from projects.errors.inputs import InputTooLarge, UnknownKey
from projects.models import CommandSession
from projects.policy.arguments import MAX_ENV_BYTES, check_launch, typing_of
from projects.policy.launch import Launch
from projects.policy.typed_input import Typing


def _check(command: str = "true", *, caller: Caller | None = None, **more: Any) -> None:
    check_launch(caller, Launch(kind=CommandSession.Kind.INTERACTIVE, command=command, **more))


@pytest.mark.parametrize("command", ["", " ", "\n\t "])
def test_there_must_be_something_to_run(command: str) -> None:
    with pytest.raises(EmptyCommand):
        _check(command)


@pytest.mark.parametrize(
    "changes", [{"command": "a\0b"}, {"cwd": "/\0"}, {"env": {"A": "\0"}}, {"env": {"A\0": ""}}]
)
def test_nul_is_refused_wherever_it_is(changes: dict[str, Any]) -> None:
    with pytest.raises(CommandHasNul):
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
    with pytest.raises(InvalidArgument) as refused:
        _check(**changes)
    assert named in str(refused.value)


def test_what_is_allowed_fits_a_frame() -> None:
    command, env = "é" * (MAX_COMMAND_BYTES // 2), {"A": "x" * (MAX_ENV_BYTES - 1)}
    _check(command, env=env)
    encode(StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, env=env, cwd="/x"))


@pytest.mark.parametrize("scopes", [set(), {"shell:any"}, {"session:input", "session:read"}])
def test_a_start_needs_a_scope_of_its_own(scopes: set[str]) -> None:
    with pytest.raises(ScopeMissing):
        _check(caller=Caller(uuid4(), "x", frozenset(scopes)))
    _check(caller=Caller(uuid4(), "x", frozenset({"session:start"})))


def test_input_is_text_and_keys_within_bounds() -> None:
    assert typing_of("é\n", eof=True) == Typing(data="é\n".encode(), eof=True)
    pressed = ("ctrl-c", "alt-x", "f12", "ctrl-]")
    assert typing_of("", keys=pressed) == Typing(keys=pressed)
    assert typing_of("x", keys=["enter"]) == Typing(data=b"x", keys=("enter",))
    with pytest.raises(InvalidArgument):
        typing_of("", keys=("enter",) * (MAX_KEYS + 1))
    with pytest.raises(InvalidArgument):
        typing_of("\udfff")
    with pytest.raises(InputTooLarge):
        typing_of("é" * (MAX_INPUT_BYTES // 2 + 1))


@pytest.mark.parametrize("key", ["", "hyper-x", "enter ", "ctrl-1", "alt-", "alt-xy", "\n"])
def test_an_unknown_key_is_refused_with_the_known_ones(key: str) -> None:
    with pytest.raises(UnknownKey) as refused:
        typing_of("", keys=("enter", key))
    assert "page-up" in refused.value.hint
    assert "ctrl-a" in refused.value.hint


def test_a_typing_shows_no_data_and_knows_whether_it_is_empty() -> None:
    assert "hunter2" not in repr(Typing(data=b"hunter2"))
    assert Typing().is_empty
    assert not Typing(secret="sudo").is_empty
    assert not Typing(secret="sudo").has_text
    for typing in (Typing(data=b"x"), Typing(keys=("enter",)), Typing(eof=True)):
        assert typing.has_text
        assert not typing.is_empty
