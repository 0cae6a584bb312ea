"""Things that a caller asks a person to do in a session."""
