"""The screen of a session as text, for pages that show it without the terminal emulator."""

from projects.admin.parts.display import visible
from projects.models import CommandSession
from projects.output.view import view_screen


def screen_text(session: CommandSession) -> str:
    """Return what the terminal of the session shows, with hidden characters spelled out."""
    shown = view_screen(session.pk, session.stdout_next_offset, session.rows, session.cols)
    return visible(shown.text.rstrip(), keep="\n")
