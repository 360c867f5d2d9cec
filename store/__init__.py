"""The store: nodes' facts, catalogs and reports in a database, behind PuppetDB's API."""
