"""The kinds of types, each a class: of single values, collections, references and objects; the base of all, and the simplest equal type."""
