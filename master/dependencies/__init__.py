"""What catalogs depend on besides their nodes: the questions that a compilation asks about the code, and the code's answers."""
