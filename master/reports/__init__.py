"""Report processors: what a master does with each report it gets."""
