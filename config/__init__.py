"""Wiring: settings, routes and the ASGI application."""
