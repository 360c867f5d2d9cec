"""What an environment defines, found and loaded by name."""
