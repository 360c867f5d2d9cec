"""Queries on the store's data: PuppetDB's query language, turned into SQL."""
