"""The rows that are the truth. No behaviour here: ``services`` writes for callers, ``inbound`` for controllers.

Invariants live in the database as constraints. Offsets and sizes are bytes; times are UTC.
"""

from projects.models.accounts import ApiToken, Controller, ControllerCredential, Credential, EnrolmentCode, Project, RateMeter
from projects.models.audit import AuditEvent, AuditMark
from projects.models.commands import ActionRequest, ControllerCommand, FileRequest, ReadCursor
from projects.models.duties import Duty
from projects.models.monitoring import Monitor, MonitorChunk
from projects.models.secrets import Secret
from projects.models.sessions import CommandSession, OutputChunk, OutputGap, StreamName

__all__ = [
    "ActionRequest",
    "ApiToken",
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
    "Monitor",
    "MonitorChunk",
    "OutputChunk",
    "OutputGap",
    "Project",
    "RateMeter",
    "ReadCursor",
    "Secret",
    "StreamName",
]
