"""The signature of a webhook, computed once more by another program."""

import subprocess
from base64 import b64decode, b64encode

import pytest

from projects.attention.signature import signed_headers
from projects.attention.targets import UnusableTarget, new_key


def openssl_signature(headers: dict[str, str], body: bytes, key: str) -> str:
    """The signature as openssl computes it from what a receiver has."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    secret = b64decode(key.removeprefix("whsec_")).hex()
    command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{secret}"]
    shown = subprocess.run([*command, "-binary"], input=content, capture_output=True, check=True)
    return f"v1,{b64encode(shown.stdout).decode()}"


def test_another_program_finds_the_same_signature() -> None:
    key, body = new_key(), '{"type":"attention.secret_wanted","name":"ö"}'.encode()
    headers = signed_headers("msg_1", 1_700_000_000, body, key)
    assert headers["webhook-signature"] == openssl_signature(headers, body, key)


def test_the_example_of_the_specification_verifies() -> None:
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, key)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!", "x" * 100])
def test_a_key_that_is_too_weak_signs_nothing(key: str) -> None:
    with pytest.raises(UnusableTarget):
        signed_headers("msg_1", 1, b"{}", key)
