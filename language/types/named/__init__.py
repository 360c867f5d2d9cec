"""Named types: aliases, type sets, and builtin aliases."""
