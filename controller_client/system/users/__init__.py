"""The users of a process, and the rights that it has."""
