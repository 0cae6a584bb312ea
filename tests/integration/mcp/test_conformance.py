"""The protocol's own conformance suite, in the revision 2026-07-28, under both ASGI servers.

Once against the example server that the suite calls by name, on the product's mount code:
everything that is scored passes. Once against the product: what does not pass is in a baseline,
with its reason.
"""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.mcp.node_packages import NodePackages
from tests.support.proxies.bearer import bearer_proxy
from tests.support.stack import SERVERS, Stack

BASELINE = Path(__file__).resolve().parents[2] / "data" / "mcp_conformance_baseline.yaml"
SCORED = 37
_RUN_SECONDS = 200
# Some of its checks give the server half a second by their own clock, which a busy machine may need
# for itself.
_ATTEMPTS = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("application", "options"),
    [
        ("tests.support.mcp.conformance_server:application", ()),
        ("config.asgi:application", ("--expected-failures", str(BASELINE))),
    ],
    ids=["example", "product"],
)
def test_everything_scored_conforms(
    node_packages: NodePackages, application: str, options: tuple[str, ...]
) -> None:
    def conforms(server: str) -> str:
        stack: Stack = type(
            "OwnStack", (Stack,), {"SERVER_KIND": server, "APPLICATION": application}
        )()
        try:
            stack.start_server()
            with bearer_proxy(stack.port, stack.provisioned.token) as origin:
                for _ in range(_ATTEMPTS):
                    done = _run(node_packages, origin, options)
                    if done.returncode == 0:
                        break
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:] + stack.logs()
            return done.stdout
        finally:
            stack.stop()

    # The suite mostly waits.
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        for said in pool.map(conforms, SERVERS):
            scenarios = (
                said.partition("=== SUMMARY ===")[2].partition("Total:")[0].strip().splitlines()
            )
            assert len(scenarios) >= SCORED


def _run(
    packages: NodePackages, origin: str, options: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    suite = packages.path("@modelcontextprotocol/conformance/dist/index.js")
    return packages.run(
        str(suite),
        "server",
        "--url",
        f"{origin}/mcp",
        "--requirements",
        "2026-07-28",
        *options,
        seconds=_RUN_SECONDS,
    )
