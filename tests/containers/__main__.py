"""Run the compose file in a container engine: ``bin/test --containers [--stand-ins] [pytest ...]``.

Without an engine, or without the images that the compose file is built on, the run is left out: the
command says why, and fails. ``--stand-ins`` makes missing images from Debian's packages, which
needs root and debootstrap.
"""

import sys
from contextlib import ExitStack

import pytest

from tests.containers.engine import images_of_others, is_here, reasons_to_leave_out
from tests.containers.stand_ins import stood_in

_STAND_INS = "--stand-ins"


def main(arguments: list[str]) -> int:
    """Run the scenarios, and return the exit code."""
    wants_stand_ins = _STAND_INS in arguments
    rest = [argument for argument in arguments if argument != _STAND_INS]
    possible = frozenset(images_of_others() if wants_stand_ins else ())
    if reasons := list(reasons_to_leave_out(possible)):
        sys.stdout.write("".join(f"containers: left out, {reason}\n" for reason in reasons))
        return 1
    with ExitStack() as stack:
        missing = [image for image in possible if not is_here(image)]
        if missing:
            sys.stdout.write(f"containers: making {', '.join(missing)} of Debian's packages\n")
            stack.enter_context(stood_in(missing))
        return int(pytest.main(["tests/containers/scenarios.py", *rest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
