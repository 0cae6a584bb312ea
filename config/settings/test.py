"""Settings of the tests: a data directory of the run's own, a file-based test database that worker threads can share."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

_data_dir = Path(tempfile.mkdtemp(prefix="holdline-tests-"))
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)

# Only while the settings are read: processes that tests start must not inherit this directory.
with mock.patch.dict(os.environ, {"HOLDLINE_DATA_DIR": str(_data_dir)}):
    from config.settings.base import *  # noqa: F403
    from config.settings.base import DATA_DIR, DATABASES

if "sqlite3" in DATABASES["default"]["ENGINE"]:
    DATABASES["default"]["TEST"] = {"NAME": DATA_DIR / "test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# pytest captures the records itself; a handler would hold the stream of whichever test came first.
LOGGING_CONFIG = None
