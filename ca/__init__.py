"""The certificate authority: its decisions, signing and files, how a CA is made, and `puppet cert`."""

__all__ = ["audit", "authority", "autosign", "commands", "configured", "registry", "service", "setup", "storage", "tasks"]
