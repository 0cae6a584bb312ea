"""Formats of dates and times on pages, one package per language."""
