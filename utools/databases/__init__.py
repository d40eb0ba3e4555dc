"""Databases of ours: a SQLite file, a PostgreSQL database, a Redis server; and where a store is."""
