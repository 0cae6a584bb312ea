"""Run the bridge's command line: ``python -m mcp_bridge``."""

from mcp_bridge.cli import console

if __name__ == "__main__":
    console()
