"""The schema of queries: entities, their fields and their relations."""
