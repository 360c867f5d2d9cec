"""The files of keys and certificates: their layout, PEM files with several blocks, and an administrator's files."""
