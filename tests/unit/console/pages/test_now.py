"""The page Now: its filters, which the address names."""

from projects.models import Controller
from tests.unit.console.conftest import PersonWith, Tenant


def test_the_address_chooses_the_filters(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    page = person_with("view_commandsession").get("/?waits=secret&host=gone%22&q=%3Cb%3E&since=5m")
    text = " ".join(page.text.split())
    assert '<option value="secret" selected>a secret</option>' in text
    assert '<option value="5m" selected>5 minutes or more</option>' in text
    assert '<option value="gone&quot;" selected>gone&quot;</option>' in text
    assert '<option value="host-of-ours" >host-of-ours</option>' in text
    assert 'value="&lt;b&gt;"' in text
    assert "host-of-theirs" not in text


def test_a_host_that_is_named_like_another_filter_is_not_chosen(
    person_with: PersonWith, ours: Tenant
) -> None:
    Controller.objects.update(name="secret")
    page = person_with("view_commandsession").get("/?waits=secret")
    assert '<option value="secret" >secret</option>' in " ".join(page.text.split())
