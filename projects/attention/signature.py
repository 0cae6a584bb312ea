"""The signature of webhooks, as Standard Webhooks 1.0 say it (https://www.standardwebhooks.com)."""

import hmac
from base64 import b64encode
from hashlib import sha256

from projects.attention.targets import key_bytes


def signed_headers(message_id: str, timestamp: int, body: bytes, key: str) -> dict[str, str]:
    """The three headers by which a receiver knows the sender, and knows a repeat."""
    content = b".".join([message_id.encode(), str(timestamp).encode(), body])
    digest = hmac.new(key_bytes(key), content, sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }
