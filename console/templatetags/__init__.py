"""Filters of the templates, under the name that a template loads."""
