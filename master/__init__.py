"""The master: what listens, asks, answers and keeps."""

__all__ = ["authorization", "bindings", "checks", "cli", "deploy", "preview", "process", "puppetdb", "reports", "termini"]
