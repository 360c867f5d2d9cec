"""Environments on disk: where they are, how they are configured, and the loaded ones."""
