"""An executor whose threads begin with it, and do not keep the process at its end."""

import subprocess
import sys
import threading

import pytest

from controller_client.server_link.ready_threads import ready_executor
from tests.support.stack import PROJECT_ROOT

_ENDS = """
import asyncio, sys, threading
from controller_client import cli
from controller_client.server_link.file_looks import FileLooks
from controller_client.server_link.ready_threads import ready_executor

async def run(hangs):
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ready_executor(2, "worker"))
    looks = FileLooks()
    assert await looks.take(60, lambda: True)
    begun = [threading.Event(), threading.Event()]
    for event, pool in zip(begun, (None, looks._threads)):
        ends = threading.Event()
        if not hangs:
            ends.set()
        loop.run_in_executor(pool, lambda e=event, f=ends: (e.set(), f.wait()))
        event.wait()

def main():
    print("told")
    asyncio.run(run(sys.argv[1] == "hung"))
    return 75

cli.main = main
cli.console()
"""


def test_an_executor_has_all_of_its_threads_at_once() -> None:
    before = set(threading.enumerate())
    executor = ready_executor(3, "three")
    made = set(threading.enumerate()) - before
    assert len(made) == 3
    assert executor.submit(threading.get_ident).result() in {each.ident for each in made}
    executor.shutdown()


@pytest.mark.parametrize("how", ["hung", "free"])
def test_a_process_ends_with_its_code_whatever_its_threads_do(how: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS, how],
        cwd=PROJECT_ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (75, "told\n")
