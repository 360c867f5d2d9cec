"""Archives of a PuppetDB: everything that it stores, as the commands that store it again."""
