"""Times in ISO 8601 with seconds and zone, to be compared with those of logs."""

from typing import Final

DATETIME_FORMAT: Final = r"Y-m-d\TH:i:sO"
SHORT_DATETIME_FORMAT: Final = DATETIME_FORMAT
DATE_FORMAT: Final = "Y-m-d"
SHORT_DATE_FORMAT: Final = DATE_FORMAT
TIME_FORMAT: Final = "H:i:s"
