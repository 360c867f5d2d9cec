"""Authorization: the access rules, and the files that they are read from."""
