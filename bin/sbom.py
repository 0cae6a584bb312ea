"""Write a bill of materials (CycloneDX, JSON) of a lock to standard output, for bin/sbom."""

import re
import signal
import sys
import tomllib
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)",
    re.MULTILINE,
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill_of(lock: str) -> Bom:
    """List every pinned package with the digests of the files that may be installed for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bill = Bom()
    bill.metadata.component = Component(
        name=project["name"], version=project["version"], type=ComponentType.APPLICATION
    )
    for entry in _ENTRY.finditer(lock):
        name, version = entry["name"], entry["version"]
        hashes = [
            HashType(alg=HashAlgorithm.SHA_256, content=digest)
            for digest in _HASH.findall(entry["rest"])
        ]
        purl = PackageURL("pypi", name=name, version=version)
        part = Component(name=name, version=version, purl=purl, bom_ref=str(purl), hashes=hashes)
        bill.components.add(part)
        bill.register_dependency(bill.metadata.component, [part])
    return bill


if __name__ == "__main__":
    # A reader that stops early, such as head, must cause no traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdout.write(
        JsonV1Dot6(bill_of((ROOT / sys.argv[1]).read_text())).output_as_string(indent=2) + "\n"
    )
