"""A message to an address of the server's own machine, which is a public one, is refused."""

import subprocess
import sys

import pytest

from tests.support.accounts import requires, requires_root

pytestmark = pytest.mark.fault
_OWN = "93.184.215.14"
_OTHER = "93.184.215.15"
_ASK = f"""
import django
django.setup()
from ipaddress import ip_address
from projects.attention.addresses import is_allowed
print(*(is_allowed(ip_address(one), is_encrypted=True) for one in ("{_OWN}", "{_OTHER}")))
"""
_IN_A_NET_OF_ITS_OWN = f"""
ip link set lo up && ip addr add {_OWN}/32 dev lo && ip route add default dev lo &&
exec "$0" -c "$1"
"""


def test_a_public_address_of_this_machine_gets_no_message() -> None:
    requires_root()
    requires("unshare", "ip")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", _IN_A_NET_OF_ITS_OWN, sys.executable, _ASK],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["False", "True"], done.stderr
