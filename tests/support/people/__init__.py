"""People: who signs in to the console, and the browser end of its socket."""
