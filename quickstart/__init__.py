"""``bin/quickstart``: from a fresh clone to a running server, a local host and a demonstration.

Two stages. ``python3 -m quickstart`` uses the standard library only: it checks what it needs, makes
``.venv`` and installs the lock. It then becomes ``.venv/bin/python -m quickstart.run``, which may
import everything.
"""
