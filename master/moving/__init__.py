"""Moving a master's state between files and the masters' database."""
