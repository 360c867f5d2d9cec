"""Moving a Puppet server's configuration, CA and nodes to this master, and back: `puppet migrate`."""
