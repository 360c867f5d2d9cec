"""The code that master and agent share: errors, settings, formats, the indirector, models, resource types."""

__version__ = "0.1.0"
