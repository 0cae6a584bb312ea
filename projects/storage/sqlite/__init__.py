"""Django's SQLite, which makes a database only where one is wanted."""
