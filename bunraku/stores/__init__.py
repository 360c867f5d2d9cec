"""A store or a PuppetDB, as commands ask it: the options, the servers and the connection."""
