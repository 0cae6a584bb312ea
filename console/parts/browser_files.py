"""Files of others that the pages load: the terminal emulator and its addons.

They are fetched by the set-up (``quickstart.browser_files``) and are not in the repository. Pages
work as text without them, and say what is missing.
"""

from functools import cache
from typing import Final

from django.contrib.staticfiles import finders

VENDOR: Final = "console/vendor/"
MISSING: Final = (
    "The terminal emulator is not installed here, so screens are text, as they were when the page "
    "was loaded. Run: python -m quickstart.browser_files"
)


@cache
def has_terminal() -> bool:
    """Returns True if the terminal emulator is among the static files of this server."""
    return finders.find(f"{VENDOR}xterm.mjs") is not None
