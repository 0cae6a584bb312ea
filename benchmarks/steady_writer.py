"""The program of ``readers``: writes at a steady rate.

Run by path with any Python: ``steady_writer.py BYTES_PER_SECOND SECONDS INTERVAL_SECONDS``.
"""

import os
import sys
import time

STAMP = 20


def main(bytes_per_second: float, seconds: float, interval_seconds: float) -> None:
    """Write a line each interval, as long as the rate asks for.

    The line begins with the monotonic clock in ns.
    """
    size = int(bytes_per_second * interval_seconds)
    due = time.monotonic()
    for _ in range(int(seconds / interval_seconds)):
        line = f"{time.monotonic_ns():0{STAMP}}".encode() + b"x" * (size - STAMP - 1) + b"\n"
        while line:
            line = line[os.write(1, line) :]
        due += interval_seconds
        time.sleep(max(0.0, due - time.monotonic()))  # noqa: TID251 - the program under observation


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
