"""Ruby's syntax of regular expressions."""
