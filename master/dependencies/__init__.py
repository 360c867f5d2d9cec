"""The dependencies of catalogs other than their nodes: a compilation's questions about the code, and the answers."""
