"""The one ``encode`` and the one ``decode``: JSON text, bytes as base64, unknown fields ignored.

A missing or mistyped field, an unknown type or an over-long frame is a :class:`BadFrame` or :class:`FrameTooLarge`;
their texts name the field, never its value.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec

from controller_client.protocol.errors import BadFrame, FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import AnyMessage, FromController, FromHolder, FromServer, Message, ToHolder

T = TypeVar("T")
_encoder = msgspec.json.Encoder()
_PLACE = re.compile(r" - at `\$[\w.\[\]]*`$")


def encode(message: Message) -> bytes:
    """One message as the UTF-8 bytes of one frame. Raises FrameTooLarge over MAX_FRAME_BYTES."""
    frame = _encoder.encode(message)
    if len(frame) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(frame), MAX_FRAME_BYTES)
    return frame


class Decoder(Generic[T]):
    """Decodes frames of one direction; a message of the other direction is a BadFrame."""

    def __init__(self, message_type: Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(message_type)

    def decode(self, frame: bytes | str) -> T:
        """The message in ``frame``. Raises BadFrame or FrameTooLarge; the frame's values are not in the text."""
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
    """Size on the wire; a str counts characters, which are fewer."""
    if isinstance(frame, bytes) or frame.isascii():
        return len(frame)
    return len(frame.encode(errors="surrogatepass"))


def _describe(error: msgspec.DecodeError) -> str:
    """The library quotes unknown tags and unknown values of an enumeration; everything else in its texts is ours."""
    text = str(error)
    if text.startswith("Invalid value"):
        return "unknown message type"
    if text.startswith("Invalid enum value"):
        place = _PLACE.search(text)
        return f"unknown value{place[0] if place else ''}"
    return text


decode_from_controller: Decoder[FromController] = Decoder(FromController)
decode_from_server: Decoder[FromServer] = Decoder(FromServer)
decode_from_holder: Decoder[FromHolder] = Decoder(FromHolder)
decode_to_holder: Decoder[ToHolder] = Decoder(ToHolder)
decode_any: Decoder[AnyMessage] = Decoder(AnyMessage)
