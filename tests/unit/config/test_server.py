"""One word chooses the server, and nothing else about the start differs."""

from typing import Any

import pytest
import uvicorn
from daphne.cli import CommandLineInterface

from config import server
from projects.conf.server import Conf
from projects.conf.setting import Environment


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was started: the server and its arguments."""
    starts: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        CommandLineInterface, "run", lambda _self, words: starts.append(("daphne", words))
    )
    monkeypatch.setattr(
        uvicorn,
        "run",
        lambda application, **options: starts.append(("uvicorn", {"app": application, **options})),
    )
    return starts


def test_daphne_is_started_unless_the_setting_says_otherwise(
    started: list[tuple[str, Any]],
) -> None:
    server.main(["--port", "1234"])
    words = ["-b", "127.0.0.1", "-p", "1234", "-v", "0", "config.asgi:application"]
    assert started == [("daphne", words)]


def test_uvicorn_is_one_word_away(started: list[tuple[str, Any]], settings: Any) -> None:
    settings.SERVER = "uvicorn"
    server.main(["--bind", "0.0.0.0", "--port", "1234"])
    ((name, options),) = started
    assert (name, options["host"], options["port"]) == ("uvicorn", "0.0.0.0", 1234)
    assert options["proxy_headers"] is False
    given = uvicorn.Config(**options)
    assert (given.http, given.loop) == ("h11", "asyncio")


def test_a_server_that_is_not_known_is_refused() -> None:
    environment = Environment({"HOLDLINE_SERVER": "gunicorn"})
    environment.read(vars(Conf)["server"])
    with pytest.raises(Exception, match="HOLDLINE_SERVER must be daphne or uvicorn"):
        environment.finish()
