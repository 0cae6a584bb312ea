#!/usr/bin/env python
"""Django's command line, with the commands of Holdline among the others."""

import gc
import os
import sys

from django.core.management import execute_from_command_line

from controller_client.system.standard_output import reader_may_go

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    # Nearly all that a command makes is modules and classes: to walk them again and again, in
    # vain, took a seventh of its time.
    gc.set_threshold(100_000)
    with reader_may_go():
        execute_from_command_line(sys.argv)
