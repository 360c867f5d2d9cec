"""Report processors: the actions of a master on each report."""
