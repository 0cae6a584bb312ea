"""PostgreSQL as Django's database: hand-written statements travel together."""
