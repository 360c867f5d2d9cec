"""The writer of commands: it writes their data into the store's database, as far as they are not stored already."""
