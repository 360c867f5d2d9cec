"""Types as they are written: their names, their parameters in brackets, and the text of a whole type."""
