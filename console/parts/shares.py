"""Bounded lists over several projects."""

from operator import attrgetter
from typing import TypeVar

from django.db.models import Model, QuerySet, Window
from django.db.models.functions import RowNumber

M = TypeVar("M", bound=Model)


def fair_share(rows: QuerySet[M], order: str, most: int) -> list[M]:
    """At most ``most`` rows, in the order of the field ``order`` (with ``-``: backwards).

    A project of which there are many hides none of another: of each project come as many as of any
    other, as far as it has them.
    """
    nth = Window(RowNumber(), partition_by="project_id", order_by=[order, "pk"])
    chosen = rows.order_by().annotate(nth=nth).order_by("nth", order, "pk")[:most]
    is_backwards, field = order.startswith("-"), order.removeprefix("-")
    return sorted(chosen, key=attrgetter(field), reverse=is_backwards)
