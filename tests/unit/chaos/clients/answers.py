"""An endpoint of the fault harness that answers as a test says, without a server."""

from typing import Any

from chaos.browser.pages import Browser, People
from chaos.wire import Endpoint, Json, Reply


class Answers(Endpoint):
    """An endpoint that gives these answers in turn, the last one for ever."""

    def __init__(self, *answers: Reply) -> None:
        super().__init__(0, "")
        self.__dict__ |= {"answers": list(answers), "sent": []}

    async def call(
        self, tool: str, arguments: Json, seconds: float, *, is_modern: bool = True
    ) -> Reply:
        found: dict[str, Any] = self.__dict__
        found["sent"].append(arguments)
        return found["answers"].pop(0) if len(found["answers"]) > 1 else found["answers"][0]

    def ids(self, key: str = "request_id") -> list[object]:
        """The ids of all calls so far, in order."""
        return [arguments[key] for arguments in self.__dict__["sent"]]


async def _manage(*arguments: str) -> str:
    raise RuntimeError(f"nobody is here to run {arguments}")


NOBODY = People(Browser(0), "", _manage)
