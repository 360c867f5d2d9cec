"""A master's metrics, measurements and state, and the names of its background tasks."""
