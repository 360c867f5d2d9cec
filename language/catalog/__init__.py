"""The catalog under construction, and its finished form on the wire."""
