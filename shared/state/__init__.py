"""The state that several masters share: one PostgreSQL database, and notices of its changes."""
