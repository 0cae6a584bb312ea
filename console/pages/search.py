"""Search in what programs printed."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.parts.access import SEE_SCREENS, page


@page(SEE_SCREENS)
def search(request: HttpRequest) -> HttpResponse:
    """Shows the hits of a search in the output of all sessions."""
    return render(request, "console/search.html")
