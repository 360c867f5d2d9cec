"""Declarations: how classes, definitions, resources and relationships enter the catalog, until the end of a compilation."""
