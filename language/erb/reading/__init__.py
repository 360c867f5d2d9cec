"""From a template or a function in Ruby to the checked tree of the subset, or a Refusal with its place."""
