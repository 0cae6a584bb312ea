"""Formats for the English pages, the only ones there are."""
