"""A PuppetDB as the master's store: where it is, what it is sent, what it is asked."""
