"""The newest bytes that monitors have read, kept for searches and for retries of a lost reply.

Offsets count all the bytes a monitor has read, over all files that had the name.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.db.models import F

from projects.conf import conf
from projects.models import Monitor, MonitorChunk
from projects.storage import clock

CHUNKS_PER_READ: Final = 16
CHUNKS_PER_TRIM: Final = 64
_STOPPED_PER_SWEEP: Final = 20


def append(monitor_id: int, offset: int, data: bytes) -> None:
    """Stores new bytes and drops the oldest beyond the limit of the settings.

    It belongs into the transaction that moves the monitor on.
    """
    if not data:
        return
    MonitorChunk.objects.create(monitor_id=monitor_id, offset=offset, size=len(data), data=data)
    cut = offset + len(data) - conf.monitor_retained_bytes
    if cut <= 0:
        return
    stored = MonitorChunk.objects.filter(monitor_id=monitor_id, offset__lt=cut).order_by("offset")
    doomed = list(
        stored.annotate(end=F("offset") + F("size"))
        .filter(end__lte=cut)
        .values_list("id", "end")[:CHUNKS_PER_TRIM]
    )
    if doomed:
        MonitorChunk.objects.filter(id__in=[chunk_id for chunk_id, _ in doomed]).delete()
        Monitor.objects.filter(id=monitor_id).update(first_offset=doomed[-1][1])


def pieces(monitor_id: int, start: int, end: int) -> Iterator[bytes]:
    """Yields the stored bytes of ``[start, end)``; ``start`` is not before the first of them."""
    stored = MonitorChunk.objects.filter(monitor_id=monitor_id)
    position = start
    while position < end:
        covering = (
            stored.filter(offset__lte=position)
            .order_by("-offset")
            .values_list("offset", flat=True)
            .first()
        )
        if covering is None:
            return
        begun = position
        rows = (
            stored.filter(offset__gte=covering, offset__lt=end)
            .order_by("offset")
            .values_list("offset", "data")
        )
        for offset, data in rows[:CHUNKS_PER_READ]:
            part = bytes(data)[position - offset : end - offset] if offset <= position else b""
            position += len(part)
            yield part
        if position == begun:
            return


def forget_stopped() -> None:
    """Removes the bytes of monitors that were stopped long ago, a few monitors at a time."""
    seconds = conf.command_retention_seconds
    if not clock.can_tell(seconds):
        return
    since = clock.now() - timedelta(seconds=seconds)
    stopped = Monitor.objects.filter(
        status=Monitor.Status.STOPPED, stopped_at__lt=since, first_offset__lt=F("next_offset")
    )
    for monitor_id in list(stopped.order_by().values_list("id", flat=True)[:_STOPPED_PER_SWEEP]):
        MonitorChunk.objects.filter(monitor_id=monitor_id).delete()
        Monitor.objects.filter(id=monitor_id).update(first_offset=F("next_offset"))
