"""Pages for operators: runs as they happen, what they ask, and the policy of projects."""

from agent.admin.approvals import AgentApprovalAdmin, ProjectApprovalsAdmin
from agent.admin.runs import AgentRunAdmin

__all__ = ["AgentApprovalAdmin", "AgentRunAdmin", "ProjectApprovalsAdmin"]
