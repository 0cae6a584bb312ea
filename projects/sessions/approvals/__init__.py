"""Calls that wait for a person: asked once, answered once, and carried out at most once."""
