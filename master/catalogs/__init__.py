"""Catalogs with file metadata in them, and catalogs for facts that the client sends."""
