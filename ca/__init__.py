"""The certificate authority: what it decides, signs and keeps, how one is made, and `puppet cert`."""

__all__ = ["audit", "authority", "autosign", "commands", "configured", "registry", "service", "setup", "storage", "tasks"]
