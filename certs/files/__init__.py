"""The files that hold keys and certificates: their layout, PEM files with several blocks, and what an administrator writes."""
