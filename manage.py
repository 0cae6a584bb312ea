#!/usr/bin/env python
"""Django's command line: migrate, createsuperuser, create_project, create_api_token, create_controller and the rest."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    execute_from_command_line(sys.argv)
