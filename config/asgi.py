"""The server's entry point: ``config.asgi:application``.

``config.serving`` imports models, so the apps are set up before it is imported.
"""

import gc
import os

import django
from django.utils.module_loading import import_string

from config.start_checks import refuse_what_cannot_work
from projects.storage.sqlite.server_lock import take_server_lock

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
# What is imported stays. The collector would go through all of it again and again, in vain.
gc.disable()
try:
    django.setup(set_prefix=False)
    refuse_what_cannot_work()
    take_server_lock()
    application = import_string("config.serving.application")
finally:
    gc.enable()
