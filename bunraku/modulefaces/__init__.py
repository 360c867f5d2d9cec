"""Faces of modules: finding, describing without running them, loading, calling."""
