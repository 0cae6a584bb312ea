"""Frames as they were when their version was published: they decode for ever, and today's sender
still writes what they hold.

``v<n>/full.jsonl`` has one frame per message with every field of the day it was added;
``v<n>/minimal.jsonl`` has only the fields a peer has to send. Lines are added for new messages and
never changed: a new optional field leaves them as they are, and ``v<n>/grown.jsonl`` gets a line
that has it.
"""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from controller_client.protocol.codec import (
    Decoder,
    decode_any,
    decode_from_controller,
    decode_from_holder,
    decode_from_server,
    decode_to_holder,
    encode,
)
from controller_client.protocol.limits import SUPPORTED_VERSIONS
from controller_client.protocol.messages import (
    AnyMessage,
    FromController,
    FromHolder,
    FromServer,
    Message,
    ToHolder,
)
from tests.contract.protocol.frame_examples import EXAMPLES
from tests.contract.protocol.grown_examples import GROWN

HERE = Path(__file__).parent
DIRECTIONS: list[tuple[Decoder[Any], Any]] = [
    (decode_from_controller, FromController),
    (decode_from_server, FromServer),
    (decode_from_holder, FromHolder),
    (decode_to_holder, ToHolder),
]
BY_TAG: dict[str, Message] = {str(example.__struct_config__.tag): example for example in EXAMPLES}
GROWN_FRAMES = [
    line
    for version in SUPPORTED_VERSIONS
    for line in (HERE / f"v{version}" / "grown.jsonl").read_bytes().splitlines()
]


def _frames(version: int, kind: str) -> dict[str, bytes]:
    lines = (HERE / f"v{version}" / f"{kind}.jsonl").read_bytes().splitlines()
    return {json.loads(line)["type"]: line for line in lines}


def _golden(kind: str) -> list[Any]:
    return [
        pytest.param(frame, id=f"v{version}-{tag}")
        for version in SUPPORTED_VERSIONS
        for tag, frame in _frames(version, kind).items()
    ]


def _is_within(part: Any, whole: Any) -> bool:
    """Whether ``whole`` says everything that ``part`` says."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _is_within(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list):
        return (
            isinstance(whole, list)
            and len(part) == len(whole)
            and all(map(_is_within, part, whole))
        )
    return bool(part == whole and type(part) is type(whole))


def test_every_message_has_an_example_and_both_golden_frames() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in get_args(AnyMessage)}
    assert set(BY_TAG) == tags
    assert (
        set(_frames(SUPPORTED_VERSIONS[-1], "full"))
        == set(_frames(SUPPORTED_VERSIONS[-1], "minimal"))
        == tags
    )


@pytest.mark.parametrize("frame", _golden("full"))
def test_a_golden_frame_means_today_what_it_meant(frame: bytes) -> None:
    assert decode_any.decode(frame) == BY_TAG[json.loads(frame)["type"]]


@pytest.mark.parametrize("frame", _golden("full"))
def test_a_peer_of_that_day_finds_everything_it_knew_in_what_is_sent_today(frame: bytes) -> None:
    golden = json.loads(frame)
    assert _is_within(golden, json.loads(encode(BY_TAG[golden["type"]])))


@pytest.mark.parametrize(("frame", "example"), list(zip(GROWN_FRAMES, GROWN, strict=True)))
def test_a_field_that_was_added_later_means_today_what_it_meant(
    frame: bytes, example: Message
) -> None:
    assert decode_any.decode(frame) == example
    assert _is_within(json.loads(frame), json.loads(encode(example)))


@pytest.mark.parametrize("frame", _golden("minimal"))
def test_a_frame_with_only_the_required_fields_still_decodes(frame: bytes) -> None:
    message = decode_any.decode(frame)
    assert _is_within(json.loads(frame), json.loads(encode(message)))


@pytest.mark.parametrize("frame", _golden("minimal"))
def test_no_field_of_a_minimal_frame_may_be_left_out(frame: bytes) -> None:
    golden = json.loads(frame)
    for field in set(golden) - {"type"}:
        without = {key: value for key, value in golden.items() if key != field}
        with pytest.raises(Exception, match=f"missing required field `{field}`"):
            decode_any.decode(json.dumps(without))


@pytest.mark.requirement("S3.P1.1", "S3.P1.2", "S3.P1.3", "S3.P1.4", "S3.P1.5")
@pytest.mark.parametrize("frame", _golden("full"))
def test_a_frame_is_read_by_exactly_the_ends_it_is_meant_for(frame: bytes) -> None:
    kind = type(BY_TAG[json.loads(frame)["type"]])
    for decoder, union in DIRECTIONS:
        if kind in get_args(union):
            assert type(decoder.decode(frame)) is kind
        else:
            with pytest.raises(Exception, match="unknown message type"):
                decoder.decode(frame)
