"""The values of the language, and the operations on them that need no type system."""
