"""From a template to the checked tree of the subset, or a Refusal with its place."""
