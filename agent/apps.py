"""The app that runs language models on the tools."""

from django.apps import AppConfig


class AgentConfig(AppConfig):
    """Rows and pages of runs."""

    name = "agent"
    verbose_name = "Agent runs"

    def ready(self) -> None:
        """Lets runs go on when their questions are answered."""
        from agent.runs.records import run_answered, run_locked
        from projects.sessions.approvals.answering import AFTER_END, BEFORE_END

        if run_answered not in AFTER_END:
            BEFORE_END.append(run_locked)
            AFTER_END.append(run_answered)
