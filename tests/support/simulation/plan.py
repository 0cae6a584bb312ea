"""The plan of one simulated run: drawn from the seed before anything runs."""

from dataclasses import dataclass
from random import Random

from controller_client.protocol.messages import OverflowPolicy, Stream


@dataclass(frozen=True)
class SessionPlan:
    """The output, the inputs and the limits in bytes of one session."""

    session_id: str
    streams: tuple[Stream, ...]
    output: tuple[tuple[Stream, bytes], ...]
    inputs: tuple[bytes, ...]
    ring_bytes: int
    overflow: OverflowPolicy

    @property
    def loses_nothing(self) -> bool:
        """True if the ring may never drop a byte, whatever happens."""
        total = sum(len(data) for _, data in self.output) + sum(map(len, self.inputs))
        return total <= self.ring_bytes


@dataclass(frozen=True)
class WorldPlan:
    """All sessions, the windows in bytes, and the probabilities of faults and duplicates."""

    sessions: tuple[SessionPlan, ...]
    session_window_bytes: int
    connection_window_bytes: int
    fault_probability: float
    duplicate_probability: float

    @staticmethod
    def draw(random: Random) -> "WorldPlan":
        window = random.choice((16, 64, 300))
        return WorldPlan(
            sessions=tuple(_draw_session(random, n) for n in range(random.randint(1, 3))),
            session_window_bytes=window,
            connection_window_bytes=random.choice((window, 2 * window)),
            fault_probability=random.choice((0.0, 0.01, 0.04, 0.15)),
            duplicate_probability=random.choice((0.0, 0.1)),
        )


def _draw_session(random: Random, n: int) -> SessionPlan:
    streams: tuple[Stream, ...] = random.choice((("stdout",), ("stdout", "stderr")))
    output = tuple(
        (random.choice(streams), random.randbytes(random.randint(1, 40)))
        for _ in range(random.randint(0, 25))
    )
    inputs = tuple(b"<%d>" % i for i in range(random.randint(0, 4)))
    overflow: OverflowPolicy = random.choice(("truncate", "block"))
    ring_bytes = random.choice((48, 200, 4096))
    return SessionPlan(f"session-{n}", streams, output, inputs, ring_bytes, overflow)
