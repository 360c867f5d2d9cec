"""Connections: the sockets that accept them, and one connection with its limits and deadlines."""
