"""The product's own system checks, run when a server starts.

Django runs checks in ``manage.py`` commands only, not under Daphne or uvicorn.
"""

import logging
from concurrent.futures import ThreadPoolExecutor

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from projects.checks import OURS

logger = logging.getLogger(__name__)


def refuse_what_cannot_work() -> None:
    """Raise ImproperlyConfigured with all errors of the checks, and log their warnings."""
    # In another thread: where an event loop runs already, Django refuses database queries.
    with ThreadPoolExecutor(1, thread_name_prefix="start checks") as pool:
        found = pool.submit(_found).result()
    for message in found:
        if not message.is_serious():
            logger.warning("%s %s (%s)", message.msg, message.hint or "", message.id)
    serious = [
        f"{message.msg} {message.hint or ''} ({message.id})"
        for message in found
        if message.is_serious()
    ]
    if serious:
        raise ImproperlyConfigured("the server does not start: " + "; ".join(serious))


def _found() -> list[checks.CheckMessage]:
    try:
        return checks.run_checks(tags=[OURS])
    finally:
        # All connections of a process to a file of SQLite share what the first one saw of its disk:
        # one that was opened while the disk was read-only would keep every later one from writing.
        connections.close_all()
