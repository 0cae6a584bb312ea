"""Ports of test servers: no two askers are given the same one, whichever thread they ask from."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.support.ports import free_port

THREADS, EACH = 16, 20


def test_threads_that_ask_at_once_are_given_different_ports() -> None:
    at_once = Barrier(THREADS)

    def ask(_number: int) -> list[int]:
        at_once.wait(120)
        return [free_port() for _ in range(EACH)]

    with ThreadPoolExecutor(THREADS) as threads:
        given = [port for ports in threads.map(ask, range(THREADS)) for port in ports]
    assert len(set(given)) == THREADS * EACH
