"""``base`` runs on one machine as it is; ``production`` hardens it; ``test`` is for the tests."""
