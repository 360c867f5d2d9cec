"""The master: what listens, asks, answers and keeps."""

__all__ = ["authorization", "bindings", "checks", "deploy", "preview", "process", "puppetdb", "reports", "termini"]
