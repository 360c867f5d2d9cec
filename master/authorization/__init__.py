"""Who may do what: the rules, and the files that they are read from."""
