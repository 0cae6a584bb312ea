"""Lists whose filter is invalid show nothing, so that no action can act on their rows.

Django drops a filter that it cannot read and shows all rows. Somebody who filtered for a dozen rows
and chose all would then act on every row there is.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList

    _Base = admin.ModelAdmin[Any]
else:
    _Base = object


ROWS_FOR_CHOICES: Final = 1000


class BrokenFilter(Exception):
    """The address of a list names a filter, or a page, that does not exist."""


class CarefulFilters(_Base):
    """A mixin before an admin class of Django's: a list with an invalid filter is refused."""

    def get_changelist_instance(self, request: HttpRequest) -> "ChangeList":
        """Raises BrokenFilter where Django would show more than was asked for."""
        if ERROR_FLAG in request.GET:
            raise BrokenFilter
        try:
            changelist = super().get_changelist_instance(request)
        except IncorrectLookupParameters:
            raise BrokenFilter from None
        for spec in changelist.filter_specs:
            if isinstance(spec, admin.SimpleListFilter) and not is_choice(spec):
                raise BrokenFilter
        return changelist

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, or the page that says that its filter is not valid."""
        try:
            return super().changelist_view(request, extra_context)
        except BrokenFilter:
            context = {
                **self.admin_site.each_context(request),
                "title": "This filter is not valid",
                "opts": self.opts,
            }
            return TemplateResponse(
                request, "admin/projects/broken_filter.html", context, status=400
            )


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with a fixed list of choices. Each choice is a condition on the rows."""

    labels: ClassVar[Mapping[str, str]] = {}
    """What a choice is called on the page, where that is not its value in the address."""

    def conditions(self) -> Mapping[str, Q]:
        raise NotImplementedError

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [(value, self.labels.get(value, value)) for value in self.conditions()]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(self.conditions().get(self.value() or "", Q()))


class AmongNewest(admin.SimpleListFilter):
    """A filter by a column, whose choices are the values in the newest rows.

    For the values of all rows, all of them would be read for every page.
    """

    newest_first = "-created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by(self.newest_first)
        found = set(rows.values_list(self.parameter_name, flat=True)[:ROWS_FOR_CHOICES])
        # A value that the address names is a choice, too, however old its rows are.
        found.add(self.value() or "")
        return [(value, value) for value in sorted(found) if value]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = {self.parameter_name or "": self.value()} if self.value() else {}
        return queryset.filter(**chosen)


class OfOneField(admin.RelatedFieldListFilter):
    """A filter by a related row, which filters even if there is only one choice.

    Django drops a filter with one choice, and shows the rows of all others, too.
    """

    def has_output(self) -> bool:
        return super().has_output() or bool(self.used_parameters)


def is_choice(spec: admin.SimpleListFilter) -> bool:
    """Returns True if the address names one of the filter's choices, or none at all."""
    value = spec.value()
    return value is None or value in {str(choice) for choice, _ in spec.lookup_choices}
