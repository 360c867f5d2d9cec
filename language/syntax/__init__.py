"""From the text of a manifest to its checked syntax tree."""
