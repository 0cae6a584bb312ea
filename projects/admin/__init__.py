"""Pages for operators. They read rows and call services; nothing is written here."""

from django.contrib import admin

from projects.admin.audit import AuditEventAdmin
from projects.admin.controllers import ControllerAdmin
from projects.admin.enrolment import ControllerCredentialAdmin, EnrolmentCodeAdmin
from projects.admin.login import LoginForm
from projects.admin.monitors import MonitorAdmin
from projects.admin.projects import ProjectAdmin
from projects.admin.secrets import SecretAdmin
from projects.admin.sessions import CommandSessionAdmin
from projects.admin.tokens import ApiTokenAdmin
from projects.admin.users import OwnGroupAdmin, OwnUserAdmin

__all__ = [
    "ApiTokenAdmin",
    "AuditEventAdmin",
    "CommandSessionAdmin",
    "ControllerAdmin",
    "ControllerCredentialAdmin",
    "EnrolmentCodeAdmin",
    "MonitorAdmin",
    "OwnGroupAdmin",
    "OwnUserAdmin",
    "ProjectAdmin",
    "SecretAdmin",
]

admin.site.site_header = admin.site.site_title = "Holdline"
admin.site.index_title = "Site administration"
admin.site.login_form = LoginForm
