"""The tools over the Model Context Protocol.

Knows the registry and who is calling; everything else is below ``projects.tools``.
"""
