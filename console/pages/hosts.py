"""The hosts, and one host."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from console.parts.access import SEE_HOSTS, hosts_of, page


@page(SEE_HOSTS)
def hosts(request: HttpRequest) -> HttpResponse:
    """Shows the hosts of the person's projects."""
    return render(request, "console/hosts.html", {"hosts": hosts_of(request)})


@page(SEE_HOSTS)
def host(request: HttpRequest, host_id: UUID) -> HttpResponse:
    """Shows one host. A host of another project does not exist."""
    found = get_object_or_404(hosts_of(request), pk=host_id)
    return render(request, "console/host.html", {"host": found})
