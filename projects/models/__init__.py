"""The rows, which are the truth.

Models have no behaviour: ``sessions.transactions`` writes for callers, ``link.inbound`` for
controllers. Invariants are constraints of the database. Offsets and sizes are bytes; times are UTC.
"""

from projects.models.accounts import (
    ApiToken,
    ApprovalPolicy,
    Controller,
    ControllerCredential,
    Credential,
    EnrolmentCode,
    Project,
    RateMeter,
)
from projects.models.attention.events import AttentionEvent
from projects.models.attention.targets import AttentionMessage, AttentionTarget
from projects.models.attention_kinds import AttentionKind
from projects.models.audit import AuditEvent, AuditMark
from projects.models.commands import (
    ActionRequest,
    Approval,
    ControllerCommand,
    FileRequest,
    ReadCursor,
)
from projects.models.duties import Duty, Restore
from projects.models.monitoring import Monitor, MonitorChunk
from projects.models.secrets import Secret
from projects.models.sessions import (
    CommandSession,
    HeldKeyboard,
    LifetimeHold,
    OutputChunk,
    OutputGap,
    RecordingScreen,
    SessionEvent,
    StreamName,
)

__all__ = [
    "ActionRequest",
    "ApiToken",
    "Approval",
    "ApprovalPolicy",
    "AttentionEvent",
    "AttentionKind",
    "AttentionMessage",
    "AttentionTarget",
    "AuditEvent",
    "AuditMark",
    "CommandSession",
    "Controller",
    "ControllerCommand",
    "ControllerCredential",
    "Credential",
    "Duty",
    "EnrolmentCode",
    "FileRequest",
    "HeldKeyboard",
    "LifetimeHold",
    "Monitor",
    "MonitorChunk",
    "OutputChunk",
    "OutputGap",
    "Project",
    "RateMeter",
    "ReadCursor",
    "RecordingScreen",
    "Restore",
    "Secret",
    "SessionEvent",
    "StreamName",
]
