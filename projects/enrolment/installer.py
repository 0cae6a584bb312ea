"""The installer that this server gives to its hosts, and the bundles that it installs.

* ``GET /install.sh``: a script with this server's address and the SHA-256 of each bundle
* ``GET /bundle/NAME``: a file that ``bin/build-controller`` made

Anybody may have them: they hold no secret, and a host has no credential yet.
"""

import logging
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from projects.conf import conf

logger = logging.getLogger(__name__)
_SCRIPT: Final = Path(__file__).with_name("install.sh")
_BUNDLE: Final = re.compile(r"holdline-controller-([a-z0-9]+-[a-z0-9_]+)\.tar\.gz")
# What an address may have inside the quotes of a shell.
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


def origin_of(request: HttpRequest) -> str:
    """The address at which people and hosts reach this server, without a slash at the end."""
    parts = urlsplit(conf.public_url or request.build_absolute_uri("/"))
    return f"{parts.scheme}://{parts.netloc}"


@require_safe
def install_script(request: HttpRequest) -> HttpResponse:
    """Answers the script for this server."""
    origin = origin_of(request)
    if not _ORIGIN.fullmatch(origin):
        raise Http404
    sums = "\n".join(f"{name} {digest}" for name, digest in sorted(_bundles().items()))
    script = _SCRIPT.read_text().replace("@SERVER@", origin).replace("@BUNDLES@", sums)
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(script, content_type="text/x-shellscript; charset=utf-8", headers=headers)


@require_safe
def bundle(_request: HttpRequest, name: str) -> HttpResponse:
    """Answers a bundle of this server's own making."""
    if not _BUNDLE.fullmatch(name):
        raise Http404
    path = Path(conf.bundle_dir) / name
    try:
        status = path.stat()
        content = _content(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        _tell(path, error)
        raise Http404 from None
    return HttpResponse(content, content_type="application/gzip")


def has_bundles() -> bool:
    """Tells whether hosts can install the daemon from this server."""
    return bool(_bundles())


def _bundles() -> dict[str, str]:
    """The SHA-256 of each bundle by its platform."""
    found = {}
    for path in Path(conf.bundle_dir).glob("*.tar.gz"):
        if match := _BUNDLE.fullmatch(path.name):
            try:
                status = path.stat()
                found[match[1]] = _digest(path, status.st_mtime_ns, status.st_size)
            except OSError as error:
                # As if it were not there: the page of hosts does not depend on it.
                _tell(path, error)
    return found


def _tell(path: Path, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        logger.warning("the bundle %s cannot be read: %s", path, error.strerror)


@lru_cache(maxsize=16)
def _digest(path: Path, _changed: int, _size: int) -> str:
    return sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=2)
def _content(path: Path, _changed: int, _size: int) -> bytes:
    """One copy of a bundle, however many hosts fetch it at the same moment."""
    return path.read_bytes()
