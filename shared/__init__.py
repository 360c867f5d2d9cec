"""What master and agent have in common: errors, settings, formats, the indirector, models, resource types."""

__version__ = "0.1.0"
