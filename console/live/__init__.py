"""The socket that keeps pages up to date."""
