"""The bodies of requests; responses, and conditional requests."""
