"""The master's termini: where its nodes, facts, files, reports and catalogs live."""
