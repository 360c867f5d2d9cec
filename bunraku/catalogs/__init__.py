"""A node's catalog on this machine, without a run: compiled, compared, downloaded or applied."""
