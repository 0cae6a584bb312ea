"""The sizes of the large answers, apart from the application that gives them.

A test that imports the application would start it.
"""

from typing import Final

MIB: Final = 1024 * 1024
LARGE_BYTES: Final = 256 * MIB
WHOLE_BYTES: Final = 24 * MIB
