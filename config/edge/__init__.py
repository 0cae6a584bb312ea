"""Bounds on every request and handshake, enforced before the sender is authenticated.

``bounds`` holds the numbers. ``requests`` is the ASGI layer, the same under every server. An ASGI
application never sees half a header or a body that never ends: ``daphne_server`` and
``uvicorn_server`` bound these inside the server.
"""
