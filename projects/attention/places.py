"""The places for messages on their way: a slow target takes none from those that answer."""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from projects.attention.sending import Letter

MOST_SENDING: Final = 64
"""Messages on their way at once, each to another target."""
MOST_OF_PROJECT: Final = 8
"""So many of them for the targets of one project."""
MOST_TRIED_BEFORE: Final = 4
"""So many of those for targets that did not receive the message the last time."""


class Places:
    """The places that are left beside the messages on their way."""

    def __init__(self, on_way: Iterable[Letter]) -> None:
        self._left = MOST_SENDING
        self._of_project: Counter[UUID] = Counter()
        self._tried_before: Counter[UUID] = Counter()
        for letter in on_way:
            self._take(letter)

    def full_projects(self) -> list[UUID]:
        """The projects whose targets have no place left."""
        return [key for key, count in self._of_project.items() if count >= MOST_OF_PROJECT]

    @property
    def are_left(self) -> bool:
        """False once nothing more can be sent now, to whatever target."""
        return self._left > 0

    def give(self, letter: Letter) -> bool:
        """Give the message a place; False if none is left for it."""
        has_one = (
            self.are_left
            and self._of_project[letter.project_id] < MOST_OF_PROJECT
            and (not letter.attempts or self._tried_before[letter.project_id] < MOST_TRIED_BEFORE)
        )
        if has_one:
            self._take(letter)
        return has_one

    def _take(self, letter: Letter) -> None:
        self._left -= 1
        self._of_project[letter.project_id] += 1
        self._tried_before[letter.project_id] += bool(letter.attempts)
