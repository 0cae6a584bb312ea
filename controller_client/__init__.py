"""Holdline's controller: the daemon that runs on a host and owns the terminals of its sessions."""

__version__ = "0.2.0.dev0"
