"""Encoding and decoding of frames: JSON text, bytes as base64, unknown fields ignored.

A missing or mistyped field or an unknown type is a :class:`BadFrame`, an over-long frame a
:class:`FrameTooLarge`. Their texts name the field, never its value.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec

from controller_client.protocol.errors import BadFrame, FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import (
    AnyMessage,
    FromController,
    FromHolder,
    FromServer,
    Message,
    ToHolder,
)

T = TypeVar("T")
_encoder = msgspec.json.Encoder()
_FIELD_PATH = re.compile(r" - at `\$[\w.\[\]]*`$")


def encode(message: Message) -> bytes:
    """Return one frame of UTF-8 bytes. Raises FrameTooLarge over MAX_FRAME_BYTES.

    The name of a file or a process need not be UTF-8. What is not is spelled in ASCII.
    """
    try:
        frame = _encoder.encode(message)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message, builtin_types=(bytes,))
        frame = _encoder.encode(_spelled(plain))
    if len(frame) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(frame), MAX_FRAME_BYTES)
    return frame


def _spelled(value: Any) -> Any:
    """The value, with what UTF-8 does not know spelled in ASCII."""
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_spelled(name): _spelled(item) for name, item in value.items()}
        case list() | tuple():
            return [_spelled(item) for item in value]
    return value


class Decoder(Generic[T]):
    """Decodes frames of one direction; a message of the other direction is a BadFrame."""

    def __init__(self, message_type: Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(message_type)

    def decode(self, frame: bytes | str) -> T:
        """Return the message in ``frame``.

        Raises BadFrame or FrameTooLarge; their texts hold no value of the frame.
        """
        size_bytes = _size_bytes(frame)
        if size_bytes > MAX_FRAME_BYTES:
            raise FrameTooLarge(size_bytes, MAX_FRAME_BYTES)
        try:
            return self._decoder.decode(frame)
        except UnicodeError:
            raise BadFrame("not UTF-8") from None
        except RecursionError:
            raise BadFrame("nested too deeply") from None
        except msgspec.DecodeError as error:
            raise BadFrame(_describe(error)) from None


def _size_bytes(frame: bytes | str) -> int:
    if isinstance(frame, bytes) or frame.isascii():
        return len(frame)
    return len(frame.encode(errors="surrogatepass"))


def _describe(error: msgspec.DecodeError) -> str:
    # Of the values in a frame msgspec quotes unknown tags and unknown values of an enumeration.
    # Everything else in its texts are names and types of our own fields.
    text = str(error)
    if text.startswith("Invalid value"):
        return "unknown message type"
    if text.startswith("Invalid enum value"):
        field_path = _FIELD_PATH.search(text)
        return f"unknown value{field_path[0] if field_path else ''}"
    return text


decode_from_controller: Decoder[FromController] = Decoder(FromController)
decode_from_server: Decoder[FromServer] = Decoder(FromServer)
decode_from_holder: Decoder[FromHolder] = Decoder(FromHolder)
decode_to_holder: Decoder[ToHolder] = Decoder(ToHolder)
decode_any: Decoder[AnyMessage] = Decoder(AnyMessage)
