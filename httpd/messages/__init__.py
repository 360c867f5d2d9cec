"""The bodies of requests, and responses; whether a client has the current response already."""
