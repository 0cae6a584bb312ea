"""Frames decode to the message that was encoded; an error names the field and not its value."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_client.protocol.codec import (
    Decoder,
    decode_any,
    decode_from_controller,
    decode_from_holder,
    decode_from_server,
    decode_to_holder,
    encode,
)
from controller_client.protocol.errors import BadFrame, FrameTooLarge, ProtocolError
from controller_client.protocol.limits import MAX_CHUNK_BYTES, MAX_FRAME_BYTES
from controller_client.protocol.messages import (
    FilesNamed,
    HolderDetach,
    InteractiveOutput,
    NamedFile,
    Ping,
    SendInput,
    Started,
)
from tests.support.running.property_settings import STEADY

OUTPUT: dict[str, Any] = {
    "type": "INTERACTIVE_OUTPUT",
    "session_id": "s",
    "stream": "stdout",
    "offset": 0,
    "seq": 1,
}
WELCOME: dict[str, Any] = {
    "type": "WELCOME",
    "heartbeat_seconds": 15,
    "lease_seconds": 45,
    "session_window_bytes": 65536,
    "connection_window_bytes": 65536,
    "sessions": [],
}
START: dict[str, Any] = {"type": "START_INTERACTIVE_CMD", "seq": 1, "session_id": "s"}


def _frame(message: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps(message | changes).encode()


def _refusal(frame: bytes | str) -> str:
    with pytest.raises(BadFrame) as raised:
        decode_any.decode(frame)
    return str(raised.value).removeprefix("bad frame: ")


def _outcome(frame: bytes) -> str:
    try:
        return type(decode_any.decode(frame)).__name__
    except BadFrame as refusal:
        return str(refusal)


def test_a_name_that_is_no_text_is_spelled_in_its_frame() -> None:
    files = [NamedFile(path="/srv/\udcff.sh", sha256="0" * 64)]
    named = decode_any.decode(encode(FilesNamed(reply_to="x", files=files)))
    assert isinstance(named, FilesNamed)
    assert [file.path for file in named.files] == ["/srv/\\udcff.sh"]
    output = InteractiveOutput(session_id="\ud800", stream="stderr", offset=1, seq=3, data=b"\xff")
    told = decode_any.decode(encode(output))
    assert isinstance(told, InteractiveOutput)
    assert (told.session_id, told.data) == ("\\ud800", b"\xff")


@given(st.binary(max_size=300), st.integers(0, 2**62), st.text(max_size=20))
@settings(STEADY, max_examples=100)
def test_a_message_survives_the_wire_whatever_its_bytes(
    data: bytes, offset: int, session_id: str
) -> None:
    message = InteractiveOutput(
        session_id=session_id, stream="stderr", offset=offset, seq=3, data=data, epoch=9
    )
    frame = encode(message)
    assert decode_from_controller.decode(frame) == message
    assert decode_from_controller.decode(frame.decode()) == message


def test_a_full_chunk_fits_its_frame() -> None:
    frame = encode(
        InteractiveOutput(
            session_id="s" * 36,
            stream="stdout",
            offset=2**62,
            seq=2**62,
            data=b"\xff" * MAX_CHUNK_BYTES,
        )
    )
    assert len(frame) < MAX_FRAME_BYTES / 2


def test_messages_and_frames_over_the_limit_are_refused() -> None:
    with pytest.raises(FrameTooLarge):
        encode(SendInput(seq=1, session_id="s", input_seq=1, data=b"x" * MAX_FRAME_BYTES))
    with pytest.raises(FrameTooLarge, match=f"frame of {MAX_FRAME_BYTES + 1} bytes"):
        decode_any.decode(b" " * (MAX_FRAME_BYTES + 1))
    with pytest.raises(FrameTooLarge):
        decode_any.decode("ä" * (MAX_FRAME_BYTES // 2 + 1))


def test_unknown_fields_are_ignored_and_missing_ones_get_their_defaults() -> None:
    message = decode_from_controller.decode(_frame(OUTPUT, invented=[1, {"deep": None}]))
    assert isinstance(message, InteractiveOutput)
    assert (message.data, message.terminal, message.epoch, message.v) == (b"", None, 0, 1)


def test_a_message_of_the_other_direction_is_a_bad_frame() -> None:
    started = encode(Started(session_id="s", command_seq=1, pid=2))
    detach = encode(HolderDetach(session_id="s"))
    cases: list[tuple[Decoder[Any], bytes]] = [
        (decode_from_server, started),
        (decode_to_holder, started),
        (decode_from_holder, detach),
        (decode_from_server, detach),
    ]
    for decoder, frame in cases:
        with pytest.raises(BadFrame, match="unknown message type"):
            decoder.decode(frame)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (_frame(OUTPUT, type="SEKRET"), "unknown message type"),
        (_frame(OUTPUT, stream="SEKRET"), "unknown value - at `$.stream`"),
        (_frame(OUTPUT, stream="SEKRET - at `$.x` "), "unknown value - at `$.stream`"),
        (
            _frame(OUTPUT, terminal={"state": "SEKRET", "offset": 1, "input_seq": 0}),
            "unknown value - at `$.terminal.state`",
        ),
        (_frame(OUTPUT, data="***SEKRET"), "Invalid base64 encoded string - at `$.data`"),
        (_frame(OUTPUT, offset="SEKRET"), "Expected `int`, got `str` - at `$.offset`"),
        (_frame(OUTPUT, offset=-1), "Expected `int` >= 0 - at `$.offset`"),
        (_frame(OUTPUT, offset=1.5), "Expected `int`, got `float` - at `$.offset`"),
        (_frame(START, env={"SEKRET": 5}), "Expected `str`, got `int` - at `$.env[...]`"),
        (_frame({"type": "INTERACTIVE_OUTPUT"}), "Object missing required field `session_id`"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"", "Input data was truncated"),
        ("\ud800", "not UTF-8"),
    ],
)
def test_a_bad_frame_is_named_by_its_field_never_by_its_value(
    frame: bytes | str, reason: str
) -> None:
    assert _refusal(frame) == reason


def test_a_frame_that_is_nested_too_deeply_does_no_harm() -> None:
    frame = b'{"type":"PING","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    # How deep is too deep depends on Python: before 3.14 on a count, then on the size of the stack.
    assert _outcome(frame) in {"Ping", "bad frame: nested too deeply"}


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xfe",
        b'{"type":"PING"} SEKRET',
        b'{"v":1}',
        _frame(OUTPUT, offset=2**70),
        b'{"type":"PING","epoch":1e400}',
        b'{"type":"PI',
    ],
)
def test_every_other_bad_frame_is_refused_without_its_values_too(frame: bytes) -> None:
    assert "SEKRET" not in _refusal(frame)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@settings(STEADY, max_examples=200)
def test_noise_is_refused_with_a_protocol_error_and_nothing_else(noise: bytes | str) -> None:
    with pytest.raises(ProtocolError):
        decode_any.decode(noise)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from([OUTPUT, START, {"type": "ACK", "offsets": []}]), st.data())
@settings(STEADY, max_examples=200)
def test_a_message_with_a_field_of_any_type_is_decoded_or_refused(
    message: dict[str, Any], data: st.DataObject
) -> None:
    field = data.draw(
        st.sampled_from(
            [*message, "env", "argv", "terminal", "data", "ttl_seconds", "v", "id", "epoch"]
        )
    )
    try:
        decode_any.decode(_frame(message, **{field: data.draw(_JSON)}))
    except BadFrame:
        return


def test_every_frame_has_an_id_of_its_own() -> None:
    assert len({Ping().id for _ in range(100)}) == 100


def test_the_value_of_a_secret_is_its_line_without_enter() -> None:
    typed = SendInput(seq=1, session_id="s", input_seq=1, secret=SendInput.secret_line(b"hunter2"))
    assert typed.secret == b"hunter2\n"
    assert typed.secret_value == b"hunter2"
    assert SendInput(seq=1, session_id="s", input_seq=1, data=b"ls\n").secret_value is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("heartbeat_seconds", 0),
        ("heartbeat_seconds", -1),
        ("lease_seconds", -1),
        ("session_window_bytes", 0),
        ("connection_window_bytes", -1),
    ],
)
def test_a_welcome_that_would_stop_or_flood_its_host_is_refused(field: str, value: int) -> None:
    assert _outcome(_frame(WELCOME)) == "Welcome"
    assert field in _refusal(_frame(WELCOME, **{field: value}))


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_frame_of_the_largest_size_passes_and_a_longer_one_does_not(letter: str) -> None:
    def named(path: str) -> FilesNamed:
        return FilesNamed(id="i", reply_to="r", files=[NamedFile(path=path)])

    room = MAX_FRAME_BYTES - len(encode(named("")))
    path = letter * (room // len(letter.encode())) + "x" * (room % len(letter.encode()))
    frame = encode(named(path))
    assert len(frame) == MAX_FRAME_BYTES
    assert decode_any.decode(frame) == decode_any.decode(frame.decode()) == named(path)
    with pytest.raises(FrameTooLarge):
        encode(named(f"{path}x"))
    longer = frame + b" "
    for text in (longer, longer.decode()):
        with pytest.raises(FrameTooLarge):
            decode_any.decode(text)
