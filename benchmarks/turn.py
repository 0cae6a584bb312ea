"""W2: measure one interactive turn, of programs whose prompts nobody describes.

``python -m benchmarks.turn``
"""

import time

from benchmarks.harness import PYTHON, arguments, in_ms, measure
from tests.support.mcp.client import Caller
from tests.support.stack import Stack

PROGRAMS = {
    "shell read": ('bash -c \'while read -p "> " x; do echo "got $x"; done\'', "w{}\n", "got w{}"),
    "python repl": (f"{PYTHON} -q", "print('w' + '{}')\n", "w{}"),
    "bash": ("bash --norc --noprofile -i", "echo w''{}\n", "w{}"),
}


def main() -> None:
    """Print the time of a turn and the share of turns that end right.

    A right turn ends with awaiting_input and the whole answer.
    """
    options = arguments(main.__doc__ or "", turns=500)

    async def body(_: Stack, caller: Caller) -> None:
        for name, (command, line, answer) in PROGRAMS.items():
            async with caller.terminal(command) as session:
                seconds, right = [], 0
                for turn in range(options.turns + 20):
                    before = time.perf_counter()
                    result = await caller.call(
                        "send_command_input",
                        session_id=session.session_id,
                        input_text=line.format(turn),
                    )
                    seconds.append(time.perf_counter() - before)
                    right += (
                        result["state"] == "awaiting_input"
                        and answer.format(turn) in result["output"]
                    )
                print(in_ms(f"W2 auto, {name}", seconds[20:], "p50 <= 8, p95 <= 20"))
                print(
                    f"{'':<28} knows and is complete: {100 * right / len(seconds):.2f} %   target "
                    "100 %"
                )

    measure(body)


if __name__ == "__main__":
    main()
