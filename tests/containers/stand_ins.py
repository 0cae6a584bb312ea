"""Images from Debian's packages under the names of those that no registry here has.

One root directory serves as all of them; each gets the entry point of its name. They stand in for
images of other versions, so what runs on them says nothing about those versions.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tests.support.installs.booted_root import let_reach_packages, release

_PACKAGES: Final = "python3-venv,postgresql,redis-server,haproxy,ca-certificates,openssl"
_PATH: Final = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As the official image does: a database of its own in the volume, made at the first start.
_POSTGRES: Final = """#!/bin/sh
set -eu
data=/var/lib/postgresql/data
bin=$(echo /usr/lib/postgresql/*/bin)
chown postgres: "$data"
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }
if [ ! -e "$data/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" >/tmp/password
  chmod 0644 /tmp/password
  as_postgres "$bin/initdb" --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/tmp/password \\
    --encoding=UTF8 --locale=C.UTF-8 --auth-host=scram-sha-256 --auth-local=trust
  echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
  as_postgres "$bin/postgres" --single -D "$data" postgres <<END
CREATE DATABASE $POSTGRES_DB OWNER $POSTGRES_USER;
END
fi
install -d -o postgres /run/postgresql
exec setpriv --reuid postgres --regid postgres --init-groups \\
  "$bin/postgres" -D "$data" -c listen_addresses='*'
"""
_TRUST: Final = "/etc/ssl/certs/ca-certificates.crt"
_CHANGES: Final = {
    # Node.js knows the authorities of this machine only if it is told where they are.
    "python": [f"ENV PATH={_PATH} NODE_EXTRA_CA_CERTS={_TRUST}", 'CMD ["python"]'],
    "postgres": [f"ENV PATH={_PATH}", 'CMD ["/postgres"]', "VOLUME /var/lib/postgresql/data"],
    "redis": [f"ENV PATH={_PATH}", 'CMD ["redis-server"]'],
    "haproxy": [
        f"ENV PATH={_PATH}",
        "USER haproxy",
        'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]',
    ],
}


@contextmanager
def stood_in(images: list[str]) -> Iterator[None]:
    """Give the engine an image under each of the names for as long as the block goes on."""
    with tempfile.TemporaryDirectory(prefix="holdline-images-") as directory:
        root = Path(directory, "root")
        _run(
            "unshare",
            "--mount",
            "debootstrap",
            "--variant=minbase",
            f"--include={_PACKAGES}",
            release(),
            str(root),
        )
        let_reach_packages(root)
        _shape(root)
        for image in images:
            changes = [word for line in _CHANGES[image.partition(":")[0]] for word in _given(line)]
            archive = subprocess.Popen(
                ["tar", "--directory", str(root), "--create", "."], stdout=subprocess.PIPE
            )
            _run("docker", "import", *changes, "-", image, stdin=archive.stdout)
            assert archive.wait() == 0
    try:
        yield
    finally:
        _run("docker", "image", "rm", "--force", *images)


def _given(change: str) -> tuple[str, str]:
    return "--change", change


def _shape(root: Path) -> None:
    """Make of the root what the images have: Python in /usr/local, and known accounts."""
    _run("chroot", str(root), "python3", "-m", "venv", "/usr/local")
    # The number of the proxy's account in its image.
    _run("chroot", str(root), "usermod", "--uid", "99", "haproxy")
    (root / "postgres").write_text(_POSTGRES)
    (root / "postgres").chmod(0o755)
    (root / "usr/local/etc/haproxy").mkdir(parents=True)


def _run(*command: str, stdin: int | IO[bytes] | None = subprocess.DEVNULL) -> None:
    done = subprocess.run(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
