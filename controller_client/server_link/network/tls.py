"""TLS as the daemon's clients use it: the settings, and the hint when a handshake fails."""

import ssl
from pathlib import Path

from controller_client.config.errors import ConfigurationError
from controller_client.protocol.sentences import sentences

_QUESTION = "Does this port speak TLS?"


def client_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Return a context that verifies certificates and speaks TLS 1.2 or newer.

    ``ca_file`` has the authorities to trust instead of the system's. Raises ConfigurationError.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigurationError(
            f"{ca_file} has no certificates that can be read: {error.strerror or error}"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def with_hint(told: str, error: Exception, timeout: type[Exception]) -> str:
    """Add a question to ``told`` if the port does not seem to speak TLS.

    ``timeout`` is the exception that the caller's library raises for a handshake without an answer.
    An untrusted certificate proves that the port speaks TLS.
    """
    is_untrusted = isinstance(error, ssl.SSLCertVerificationError)
    if is_untrusted or not isinstance(error, (timeout, ssl.SSLError)):
        return told
    return sentences(told, _QUESTION)
