"""`puppet lookup --explain`: the steps of a lookup as a tree, and a lookup that writes it."""
