"""Environments on disk: where they are, how their files are read, and what has been loaded of them."""
