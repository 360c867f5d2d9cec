"""A PuppetDB as the master's store: its address, commands and queries."""
