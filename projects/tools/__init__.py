"""The tools: one registry, republished unchanged by MCP and by the agent loop."""
