"""Settings of the tests: a new data directory, and a test database that threads can share."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

_data_dir = Path(tempfile.mkdtemp(prefix="holdline-tests-"))
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)

# Set only while the settings are read: processes that tests start must not inherit the directory.
with mock.patch.dict(os.environ, {"HOLDLINE_DATA_DIR": str(_data_dir)}):
    from config.settings.base import *  # noqa: F403
    from config.settings.base import DATA_DIR, DATABASES

if "sqlite" in DATABASES["default"]["ENGINE"]:
    DATABASES["default"]["TEST"] = {"NAME": DATA_DIR / "test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each client of a test would look through all static files, of which it asks for hardly any.
WHITENOISE_AUTOREFRESH = True
# pytest captures the log itself; a handler would keep the output stream of the first test.
LOGGING_CONFIG = None
