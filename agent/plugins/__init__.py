"""Plugins of modules: how they are fetched, and which ones a run loads."""
