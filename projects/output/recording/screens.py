"""Screens of a recording to begin from: a jump feeds a terminal what came after the one before it.

They are made from the stored output and can be made again. Whoever takes output away takes away the
screens that may show it.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, OutputGap, RecordingScreen
from projects.output.recording import rows
from projects.output.result import Result

STEP_BYTES: Final = 256 * 1024
MAX_SCREENS: Final = 1000
MAX_STATE_BYTES: Final = 1024 * 1024


class ScreenPlace(Result):
    """A screen to begin from. The output after it begins at ``stdout`` and ``stderr``."""

    time: float
    stdout: int
    stderr: int

    @property
    def place(self) -> int:
        """The number of bytes of both streams before."""
        return self.stdout + self.stderr


class NewScreen(NamedTuple):
    """A screen at its place, with its state as it is stored."""

    at: ScreenPlace
    state: bytes


def places(session_id: UUID, after: int = -1) -> list[ScreenPlace]:
    """Return where the screens are whose place is after ``after``, in their order."""
    found = RecordingScreen.objects.filter(session_id=session_id, place__gt=after)
    columns = found.order_by("place").values("time", "stdout", "stderr")
    return [ScreenPlace(**row) for row in columns]


def state_at(session_id: UUID, place: int) -> bytes | None:
    """Return the deflated state of a screen; None if there is no screen."""
    found = RecordingScreen.objects.filter(session_id=session_id, place=place)
    state = found.values_list("state", flat=True).first()
    return None if state is None else bytes(state)


def step_bytes(session: CommandSession) -> int:
    """Return how many bytes lie between two screens of ``session``."""
    return max(STEP_BYTES, sum(rows.ends(session).values()) // MAX_SCREENS)


def last(session_id: UUID) -> ScreenPlace:
    """Return where the last screen is, or the beginning if there is none."""
    found = RecordingScreen.objects.filter(session_id=session_id).order_by("-place")
    row = found.values("time", "stdout", "stderr").first()
    return ScreenPlace(**(row or {"time": 0.0, "stdout": 0, "stderr": 0}))


def is_covered(session: CommandSession) -> bool:
    """True if no moment is further than two steps from a screen or from the beginning."""
    begin = session.stdout_first_offset + session.stderr_first_offset
    place = max(begin, last(session.pk).place)
    return sum(rows.ends(session).values()) - place <= 2 * step_bytes(session)


def version(session_id: UUID) -> tuple[object, ...]:
    """Return a value that changes whenever output is taken away or a secret is to be masked."""
    session = CommandSession.objects.filter(id=session_id)
    row = session.values_list(
        "cleared_at", "stdout_first_offset", "stderr_first_offset", "sealed_secrets"
    ).first()
    # Each time that output is taken away a gap is made, also where it takes another one's place.
    gaps = OutputGap.objects.filter(session_id=session_id)
    newest = gaps.order_by("-id").values_list("id", flat=True).first()
    return *(row or ()), newest


def store(session_id: UUID, read_at: tuple[object, ...], screens: Iterable[NewScreen]) -> bool:
    """Store screens, unless the ``version`` is not ``read_at`` any more.

    A screen that is there already stays. Returns False if nothing was stored.
    """
    with transaction.atomic():
        CommandSession.objects.select_for_update(no_key=True).filter(id=session_id).first()
        if version(session_id) != read_at:
            return False
        RecordingScreen.objects.bulk_create(
            [
                RecordingScreen(
                    session_id=session_id,
                    place=at.place,
                    stdout=at.stdout,
                    stderr=at.stderr,
                    time=at.time,
                    state=state,
                )
                for at, state in screens
            ],
            ignore_conflicts=True,
        )
    return True


def forget_up_to(session_id: UUID, stream: Stream, cut: int) -> None:
    """Delete the screens that show nothing but output before ``cut`` of a stream."""
    RecordingScreen.objects.filter(Q(**{f"{stream}__lte": cut}), session_id=session_id).delete()


def forget_from(session_id: UUID, stream: Stream, start: int) -> None:
    """Delete the screens that may show output behind ``start`` of a stream."""
    RecordingScreen.objects.filter(Q(**{f"{stream}__gt": start}), session_id=session_id).delete()
