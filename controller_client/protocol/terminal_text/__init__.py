"""Bytes of a terminal as text that hides nothing, and does nothing to whoever shows it.

The daemon's commands and the server share it, so both show the same text for the same bytes.
``view`` renders bytes; ``unseen`` spells out characters that cannot be seen. There is no I/O here.
"""
