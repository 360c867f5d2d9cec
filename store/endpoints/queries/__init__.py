"""Queries over HTTP: paths and parameters become questions, rows become JSON."""
