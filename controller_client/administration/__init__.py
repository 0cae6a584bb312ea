"""The administration of this host itself: the service, its sessions, and what is wrong here.

The daemon imports nothing of it, so that a running daemon stays small.
"""
