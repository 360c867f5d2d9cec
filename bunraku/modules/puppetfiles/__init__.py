"""Puppetfiles: their declarations, the origins of the modules, and their installation into an environment."""
