"""The values of the language, and what can be said of them without the type system."""
