"""The tree of a query as SQL, for SQLite and for PostgreSQL."""
