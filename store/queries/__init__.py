"""Questions about what the store holds: PuppetDB's query language, turned into SQL."""
