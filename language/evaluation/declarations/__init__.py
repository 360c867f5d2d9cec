"""What enters the catalog: classes, definitions, resources and their relationships, from the declaration to the end of a compilation."""
