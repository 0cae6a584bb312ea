"""An operator at a page: takes the keyboard of a session, types, and hands it back."""

import asyncio
import re
import time
import uuid
from contextlib import suppress
from typing import Final

from chaos.browser.socket import BrokenError, Socket
from chaos.clients.caller import GaveUpError
from chaos.clients.people.viewer import Viewer
from chaos.wire import Json, Outcome

_PATIENCE_SECONDS: Final = 240.0
_PROMPT_SECONDS: Final = 60.0
_PROMPT: Final = re.compile(rb"(\d+)> $")
# The words of the socket for what is done; what the page hears of a hand-back is a new state.
_ANSWERS: Final = {"taken": "take", "typed": "input", "handed_back": "release"}


class Operator(Viewer):
    """A page with a keyboard. Each message of it is a call in the history, by ``console_`` names.

    A message whose connection broke before the answer came is sent again over the next one, an
    input under its number.
    """

    has_keyboard = False
    _keyboard = ""
    _seq = 0
    _turn = -1
    _about = ""
    _answer: Json | None = None

    async def take(self) -> bool:
        """Take the keyboard; False if that is refused. Raises GaveUpError."""
        answer = await self._insist("take")
        self.has_keyboard = answer["type"] != "refused"
        if self.has_keyboard:
            self._keyboard = self._keyboard or str(uuid.uuid4())
            self._note("keyboard", state="held")
        return self.has_keyboard

    async def has_seen(self, offset: int) -> bool:
        """Wait until the page shows what callers were shown; False if that takes too long.

        The prompt at the end of an older page is answered already.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROMPT_SECONDS):
                await self.until(lambda: self.at is not None and self.at >= offset)
                return True
        return False

    async def type_line(self, text: str) -> bool:
        """Type a line once the program asks for the next one; False if it does not.

        Raises GaveUpError.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROMPT_SECONDS):
                await self.until(lambda: self._is_asked() or not self.session.get("is_active"))
        if not self._is_asked() or not self.has_keyboard:
            return False
        self._turn = self._asked_turn()
        self._seq += 1
        fields = {"keyboard": self._keyboard, "seq": self._seq, "text": f"{text}\n"}
        return (await self._insist("input", **fields))["type"] != "refused"

    async def hand_back(self, note: str) -> None:
        """Hand the keyboard back with a note for the caller. Raises GaveUpError."""
        self._note("keyboard", state="handing", note=note)
        self.has_keyboard = False
        await self._insist("release", note=note)
        self._note("keyboard", state="back", note=note)

    async def on_open(self, socket: Socket) -> None:
        """Go on with the keyboard, if it is still there. Raises BrokenError."""
        if self.has_keyboard:
            await socket.send("take", has=True)

    async def on_message(self, message: Json) -> None:
        """Note the answer to what was sent last, or that the keyboard is gone."""
        kind = str(message["type"])
        if kind == "session" and not message["operator"]:
            kind = "handed_back"
        is_refusal = kind == "refused" and message["about"] == self._about
        is_own = kind != "typed" or message["seq"] == self._seq
        if is_refusal or (_ANSWERS.get(kind) == self._about and is_own):
            self._answer = message
        elif kind == "refused" and message["about"] == "take" and self.has_keyboard:
            self.has_keyboard = False
            self._note("keyboard", state="lost", code=message["code"])

    def _asked_turn(self) -> int:
        found = _PROMPT.search(self.tail)
        return int(found[1]) if found and self.name.encode() in self.tail else -1

    def _is_asked(self) -> bool:
        return self._asked_turn() > self._turn

    async def _insist(self, type_: str, **fields: object) -> Json:
        """Send a message until it is answered; return the answer. Raises GaveUpError."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROMPT_SECONDS):
                    await self.until(lambda: self.socket is not None)
                    answer = await self._once(type_, fields)
                    if answer is not None:
                        return answer
        self._note("gave_up", tool=f"console_{type_}", body={})
        raise GaveUpError(type_)

    async def _once(self, type_: str, fields: Json) -> Json | None:
        """Send a message over this connection; None if it breaks before the answer."""
        socket, invoked = self.socket, time.monotonic()
        self._about, self._answer = type_, None
        try:
            if socket is not None:
                await socket.send(type_, **fields)
                await self.until(lambda: self._answer is not None or self.socket is not socket)
        except BrokenError:
            pass
        finally:
            answer, self._about = self._answer, ""
            self._note_call(type_, fields, invoked, answer)
        return answer

    def _note_call(self, type_: str, fields: Json, invoked: float, answer: Json | None) -> None:
        outcome: Outcome = "unknown"
        if answer is not None:
            outcome = "refused" if answer["type"] == "refused" else "ok"
        arguments: Json = {"session_id": self.session_id}
        if type_ == "input":
            arguments["input_text"] = fields["text"]
            arguments["request_id"] = f"{fields['keyboard']} {fields['seq']}"
        self._note(
            "call",
            tool=f"console_{type_}",
            arguments=arguments,
            wait=0.0,
            invoked=round(invoked, 6),
            outcome=outcome,
            body=answer if answer is not None and outcome == "refused" else {},
        )
