"""The command line of a fork server, which runs before everything else and may have rights."""

import subprocess
from pathlib import Path

from controller_client.server_link.holders.privileged import (
    fork_server_command,
    fork_server_environment,
)


def test_a_module_in_the_daemons_directory_is_not_executed(tmp_path: Path) -> None:
    for module in ("controller_client", "msgspec", "asyncio"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    # Without a socket as its standard input it ends.
    subprocess.run(
        fork_server_command(tmp_path / "state", None, None),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=fork_server_environment(),
        check=False,
        timeout=30,
    )
    assert not (tmp_path / "executed").exists()
