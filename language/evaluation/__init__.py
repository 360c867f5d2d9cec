"""Running the generated code: scopes, definitions, resource expressions, the order of a compilation."""
