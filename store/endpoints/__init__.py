"""PuppetDB's HTTP interface: commands, queries, administration, status and metrics."""
