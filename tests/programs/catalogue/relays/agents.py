"""Command lines of coding agents before their first login, in a network of their own."""

from tests.programs.catalogue.program import ends, runs, shows

_ALONE = "unshare -rn env HOME={home}"
_TERMINAL = {"COLORTERM": "truecolor"}
EVERYDAY = ()
ALL = (
    runs(
        "codex",
        _ALONE + " {node}/codex --no-daemon",
        shows("Sign in|ChatGPT", "\x03", "key|screen"),
        ends(None),
        env=_TERMINAL,
    ),
    runs(
        "gemini",
        _ALONE + " {node}/gemini",
        shows("trust|auth|Auth", "\x03", "key|screen"),
        shows("", None, "key|screen|line"),
        env=_TERMINAL,
    ),
    runs(
        "qwen",
        _ALONE + " {node}/qwen",
        shows("auth|Auth|trust", "\x03", "key|screen"),
        shows("", None, "key|screen|line"),
        env=_TERMINAL,
    ),
    runs(
        "opencode",
        _ALONE + " {node}/opencode",
        shows("commands|agent", "\x03", "screen"),
        ends(None),
        env=_TERMINAL,
    ),
    runs(
        "copilot",
        _ALONE + " {node}/copilot",
        shows("trust|login|Copilot", "\x03", "key|screen"),
        shows("", None, "key|screen|line"),
        env=_TERMINAL,
    ),
)
