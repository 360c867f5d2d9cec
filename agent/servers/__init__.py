"""Talking to servers: which one, over which connection, and where files come from."""
