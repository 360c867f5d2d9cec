"""Carrying out commands: what they say is written into the store's database, as far as it is not there already."""
