"""PuppetDB's query language as JSON (AST), read into a checked tree."""
