"""Pages for operators: runs as they happen."""

from agent.admin.runs import AgentRunAdmin

__all__ = ["AgentRunAdmin"]
