"""From values to types: the type of a value, the common type of several, and the elements of a value."""
