"""Metadata and contents of local files, as file servers and agents hand them out."""
