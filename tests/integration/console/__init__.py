"""The console against a real server: its socket, by hand-made messages."""
