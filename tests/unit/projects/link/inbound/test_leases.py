"""Only the lease of the newest connection, with a good credential, is renewed."""

from uuid import uuid4

import pytest
from django.utils import timezone

from projects.accounts.credentials import controller_credential_create
from projects.enrolment.revocation import controller_credential_revoke
from projects.link.inbound import hello as greeting
from projects.link.inbound import leases
from projects.link.inbound.leases import RENEWED_AT_ONCE, Lease
from projects.link.inbound.refusals import Fenced, Revoked
from projects.models import Controller
from tests.support.rows import make_controller, make_hello

pytestmark = pytest.mark.django_db(transaction=True)


def _connected() -> Lease:
    controller = make_controller(f"host-{uuid4().hex[:8]}")
    credential, _ = controller_credential_create(controller=controller)
    epoch = greeting.hello(controller.id, make_hello(), credential.id)[0].epoch
    Controller.objects.filter(id=controller.id).update(lease_expires_at=None)
    return Lease(controller.id, epoch, credential.id)


def _online() -> set[object]:
    return set(
        Controller.objects.filter(lease_expires_at__gt=timezone.now()).values_list("id", flat=True)
    )


def _revoke(lease: Lease) -> None:
    controller = Controller.objects.get(id=lease.controller_id)
    controller_credential_revoke(
        credential=controller.credentials.get(id=lease.credential_id), actor="admin:a"
    )


def test_one_is_renewed_for_the_newest_connection_with_a_valid_credential() -> None:
    lease = _connected()
    leases.renew_one(lease)
    assert _online() == {lease.controller_id}
    older = lease._replace(epoch=lease.epoch - 1)
    for ask in (leases.renew_one, leases.check_standing):
        with pytest.raises(Fenced):
            ask(older)
    leases.check_standing(lease)
    _revoke(lease)
    for ask in (leases.renew_one, leases.check_standing):
        with pytest.raises(Revoked):
            ask(lease)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_of_many_those_are_renewed_that_stand(count: int) -> None:
    standing = [_connected() for _ in range(count)]
    fenced, revoked = _connected(), _connected()
    _revoke(revoked)
    asked = [*standing, fenced._replace(epoch=fenced.epoch - 1), revoked]
    assert leases.renew(asked) == set(standing)
    assert _online() == {lease.controller_id for lease in standing}


def test_as_many_as_there_may_be_fit_into_one_statement() -> None:
    lease = _connected()
    assert leases.renew([lease] * RENEWED_AT_ONCE) == {lease}


def test_a_daemon_that_says_it_goes_is_offline_at_once() -> None:
    lease = _connected()
    leases.renew_one(lease)
    leases.release(lease.controller_id, lease.epoch)
    assert _online() == set()
