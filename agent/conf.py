"""The settings of runs of models, declared once and read typed: ``conf.max_steps``."""

from projects.conf.setting import Choice, Flag, Number, Seconds, Text


class Conf:
    """Each attribute is a setting of ``docs/reference/settings.md``, which has the same words."""

    is_working_here = Flag(
        "HOLDLINE_AGENT_WORKER",
        True,
        "true: the server carries out [agent runs](../howto/agent.md) itself. false: only "
        "`agent_worker` processes do",
    )
    concurrency = Number(
        "HOLDLINE_AGENT_CONCURRENCY",
        4,
        "most runs that one process carries out at the same time",
        at_least=1,
    )
    poll_seconds = Seconds(
        "HOLDLINE_AGENT_POLL_SECONDS", 1.0, "how often a worker looks for runs", at_least=0.05
    )
    lease_seconds = Seconds(
        "HOLDLINE_AGENT_LEASE_SECONDS",
        15.0,
        "another worker takes a run over if its worker did not renew the lease for this long",
        at_least=0.5,
    )
    model = Text(
        "HOLDLINE_AGENT_MODEL",
        "scripted:demo",
        "model of runs that name none: `openai:NAME`, `anthropic:NAME` or a scripted one",
    )
    openai_url = Text(
        "HOLDLINE_AGENT_OPENAI_URL",
        "",
        "endpoint of `openai:` models, such as `http://127.0.0.1:11434/v1`: any server of the Chat "
        "Completions API",
        shown="OpenAI",
    )
    openai_key = Text("OPENAI_API_KEY", "", "key for `openai:` models", shown="none")
    anthropic_url = Text(
        "HOLDLINE_AGENT_ANTHROPIC_URL", "", "endpoint of `anthropic:` models", shown="Anthropic"
    )
    anthropic_key = Text("ANTHROPIC_API_KEY", "", "key for `anthropic:` models", shown="none")
    model_silence_seconds = Seconds(
        "HOLDLINE_AGENT_MODEL_SILENCE_SECONDS",
        120.0,
        "a question is asked again if the model sends nothing for this long",
        at_least=0.1,
    )
    model_attempts = Number(
        "HOLDLINE_AGENT_MODEL_ATTEMPTS",
        6,
        "how often one question is asked at most before the run ends as `model_busy`, "
        "`model_unreachable` or `model_silent`",
        at_least=1,
    )
    model_backoff_seconds = Seconds(
        "HOLDLINE_AGENT_MODEL_BACKOFF_SECONDS",
        2.0,
        "pause after the first failed attempt. The pause doubles, unless the endpoint says how "
        "long to wait",
    )
    context_tokens = Number(
        "HOLDLINE_AGENT_CONTEXT_TOKENS",
        128_000,
        "most tokens that a model is shown at once. Beyond that, old output is shortened first",
        at_least=4000,
    )
    approvals = Choice(
        "HOLDLINE_AGENT_APPROVALS",
        "ask-risky",
        "which calls of agent runs wait for a person in projects without a policy for their runs: "
        "`auto` (none), `ask-risky`, `ask-all`. The stricter of this and the policy of the project "
        "holds",
        choices=("auto", "ask-risky", "ask-all"),
    )
    max_steps = Number(
        "HOLDLINE_AGENT_MAX_STEPS",
        60,
        "most answers of the model in a run that names no budget",
        at_least=1,
    )
    max_tokens = Number(
        "HOLDLINE_AGENT_MAX_TOKENS",
        2_000_000,
        "most tokens that such a run reads and writes",
        at_least=1,
    )
    max_cost_cents = Number(
        "HOLDLINE_AGENT_MAX_COST_CENTS",
        500,
        "most US cents of such a run, by published prices; 0: no limit. A model without a "
        "published price counts as free",
    )
    max_run_seconds = Seconds(
        "HOLDLINE_AGENT_MAX_RUN_SECONDS",
        3600.0,
        "longest time that workers spend on such a run. Waiting for people does not count",
        at_least=1.0,
    )
    output_bytes = Number(
        "HOLDLINE_AGENT_OUTPUT_BYTES",
        16 * 1024,
        "most output of one call that the model is shown",
        at_least=1024,
    )


conf = Conf()
