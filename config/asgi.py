"""The server's entry point: ``config.asgi:application``. What is served needs the apps loaded, so they are first."""

import os

import django
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
django.setup(set_prefix=False)
application = import_string("config.serving.application")
