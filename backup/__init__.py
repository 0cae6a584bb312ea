"""Backups of the server and their restoration: what is copied, and what a restore suspends."""
