"""The store's database: its tables, on SQLite and on PostgreSQL."""
