"""``base`` runs on one machine as it is; ``production`` hardens it; ``test`` is for the tests."""

from config.env import Environment

environment = Environment()
"""One for all modules of settings: everything that is wrong with it is reported together."""
