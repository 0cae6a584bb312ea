"""Typed access to the settings of this app, read when used. Sizes are bytes, times are seconds."""

from django.conf import settings


class Conf:
    """One property per setting; ``config.settings.base`` says what each is for and which variable sets it."""

    @property
    def is_working_here(self) -> bool:
        """AGENT_WORKER: whether the server process carries out runs."""
        return bool(settings.AGENT_WORKER)

    @property
    def concurrency(self) -> int:
        """AGENT_CONCURRENCY: runs one process carries out at once."""
        return int(settings.AGENT_CONCURRENCY)

    @property
    def poll_seconds(self) -> float:
        """AGENT_POLL_SECONDS: how often a worker looks for runs."""
        return float(settings.AGENT_POLL_SECONDS)

    @property
    def lease_seconds(self) -> float:
        """AGENT_LEASE_SECONDS: a run whose worker said nothing for this long is taken up by another."""
        return float(settings.AGENT_LEASE_SECONDS)

    @property
    def model(self) -> str:
        """AGENT_MODEL: the model of runs that name none, such as ``openai:gpt-5``."""
        return str(settings.AGENT_MODEL)

    @property
    def openai_url(self) -> str:
        """AGENT_OPENAI_URL: where ``openai:`` models are; empty for OpenAI itself."""
        return str(settings.AGENT_OPENAI_URL)

    @property
    def openai_key(self) -> str:
        """OPENAI_API_KEY."""
        return str(settings.OPENAI_API_KEY)

    @property
    def anthropic_url(self) -> str:
        """AGENT_ANTHROPIC_URL: where ``anthropic:`` models are; empty for Anthropic itself."""
        return str(settings.AGENT_ANTHROPIC_URL)

    @property
    def anthropic_key(self) -> str:
        """ANTHROPIC_API_KEY."""
        return str(settings.ANTHROPIC_API_KEY)

    @property
    def model_silence_seconds(self) -> float:
        """AGENT_MODEL_SILENCE_SECONDS: a model that sends nothing for this long is asked again."""
        return float(settings.AGENT_MODEL_SILENCE_SECONDS)

    @property
    def model_attempts(self) -> int:
        """AGENT_MODEL_ATTEMPTS: how often one question is asked before the run ends."""
        return int(settings.AGENT_MODEL_ATTEMPTS)

    @property
    def model_backoff_seconds(self) -> float:
        """AGENT_MODEL_BACKOFF_SECONDS: the first pause between two attempts; it doubles."""
        return float(settings.AGENT_MODEL_BACKOFF_SECONDS)

    @property
    def context_tokens(self) -> int:
        """AGENT_CONTEXT_TOKENS: what is shown to a model at once, at most."""
        return int(settings.AGENT_CONTEXT_TOKENS)

    @property
    def approvals(self) -> str:
        """AGENT_APPROVALS: the policy of projects that have none of their own."""
        return str(settings.AGENT_APPROVALS)

    @property
    def max_steps(self) -> int:
        """AGENT_MAX_STEPS: budget of a run that names none."""
        return int(settings.AGENT_MAX_STEPS)

    @property
    def max_tokens(self) -> int:
        """AGENT_MAX_TOKENS: budget of a run that names none; read and written together."""
        return int(settings.AGENT_MAX_TOKENS)

    @property
    def max_cost_cents(self) -> int:
        """AGENT_MAX_COST_CENTS: budget of a run that names none; 0 for no limit."""
        return int(settings.AGENT_MAX_COST_CENTS)

    @property
    def max_run_seconds(self) -> float:
        """AGENT_MAX_RUN_SECONDS: budget of a run that names none; waiting for people does not count."""
        return float(settings.AGENT_MAX_RUN_SECONDS)

    @property
    def output_bytes(self) -> int:
        """AGENT_OUTPUT_BYTES: output one call shows to the model, at most."""
        return int(settings.AGENT_OUTPUT_BYTES)


conf = Conf()
