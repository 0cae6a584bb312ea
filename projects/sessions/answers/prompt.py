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
    # The prompt of a full screen is a piece of a drawn line, with the blanks in it.
    text = " ".join(asked.split()) if now.terminal_kind == "screen" else asked
    return Prompt(
        kind=now.terminal_kind,  # type: ignore[arg-type]  # written from the protocol's own literals
        text=text,
        evidence=now.terminal_evidence,  # type: ignore[arg-type]  # likewise
        **expectation(now.terminal_kind, asked, around)._asdict(),
    )


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
