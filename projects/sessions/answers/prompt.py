"""The prompt of a session that waits for input, as results show it. Runs in a database thread."""

from functools import partial
from uuid import UUID

from projects.output.view import glance_at_screen, lines_above
from projects.secrets.masks import SecretMask, mask_of
from projects.sessions.answers.results import Prompt
from projects.sessions.asked.drawn import MENU_SIGNS
from projects.sessions.asked.expectation import DrawnScreen, Surroundings, expectation
from projects.sessions.snapshot import Snapshot


def prompt_of(session_id: UUID, now: Snapshot) -> Prompt:
    """The prompt as the host reported it, and the answer that it asks for."""
    mask = mask_of(session_id, now.sealed_secrets)
    asked = mask.masked(now.terminal_prompt)
    around = Surroundings(
        partial(lines_above, session_id, now.stdout_next_offset, mask),
        partial(_screen, session_id, now, mask),
    )
    return Prompt(
        kind=now.terminal_kind,  # type: ignore[arg-type]  # written from the protocol's own literals
        text=shown_text(now.terminal_kind, asked),
        evidence=now.terminal_evidence,  # type: ignore[arg-type]  # likewise
        **expectation(now.terminal_kind, asked, around)._asdict(),
    )


def shown_text(kind: str, asked: str) -> str:
    """The text of a prompt, without the blanks that fill the row of a drawn screen."""
    # A program that waits for a key may draw a table without being a full screen, as top does. Its
    # last row is filled up to the columns of the terminal, which no question is.
    is_row = kind == "screen" or (kind == "key" and asked.endswith("  "))
    return " ".join(asked.split()) if is_row else asked


def _screen(session_id: UUID, now: Snapshot, mask: SecretMask) -> DrawnScreen | None:
    screen = glance_at_screen(
        session_id,
        now.stdout_next_offset,
        rows=now.rows,
        cols=now.cols,
        signs=MENU_SIGNS,
        mask=mask,
    )
    if screen is None:
        return None
    return DrawnScreen(screen.lines, screen.cursor_row, screen.cursor_column)
