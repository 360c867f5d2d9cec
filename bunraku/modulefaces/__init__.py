"""Faces that modules bring: found, described without being run, loaded, called."""
