"""The bridge: Holdline's tools over stdio, for MCP clients that speak nothing else.

A distribution of its own, on the MCP SDK alone.
"""

__version__ = "0.2.0.dev0"
