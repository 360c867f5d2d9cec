"""The base of providers whose things are lines of a file."""
