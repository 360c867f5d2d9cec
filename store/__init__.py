"""The store: nodes' facts, catalogs and reports in a database, behind PuppetDB's API."""

__all__ = ["archive", "cli", "commands", "database", "jsontext", "moving", "queries"]
