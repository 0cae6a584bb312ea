#!/usr/bin/env python
"""Django's command line, with the commands of Holdline among the others."""

import os
import sys

from django.core.management import execute_from_command_line

from controller_client.system.standard_output import reader_may_go

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    with reader_may_go():
        execute_from_command_line(sys.argv)
