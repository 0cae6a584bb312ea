"""Pages of what waits for a person."""
