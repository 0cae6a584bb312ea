"""An executor whose threads begin with it."""

import threading

from controller_client.server_link.ready_threads import ready_executor


def test_an_executor_has_all_of_its_threads_at_once() -> None:
    before = set(threading.enumerate())
    executor = ready_executor(3, "three")
    made = set(threading.enumerate()) - before
    assert len(made) == 3
    assert executor.submit(threading.get_ident).result() in {each.ident for each in made}
    executor.shutdown()
