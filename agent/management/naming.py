"""Runs that people name on a command line."""

from uuid import UUID

from agent.errors import RunNotFound
from agent.models import AgentRun


def run_named(text: str) -> UUID:
    """The run with this id, or the only run whose id begins with ``text``. Raises RunNotFound."""
    runs = AgentRun.objects.filter(id__startswith=text.lower()).values_list("id", flat=True)
    found = list(runs[:2]) if text.strip() else []
    if len(found) != 1:
        raise RunNotFound(text)
    return found[0]
