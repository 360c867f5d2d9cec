"""What can be asked for: entities, their fields and how they belong together."""
