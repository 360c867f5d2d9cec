"""Puppet's language, from syntax to catalog. It reads nothing but its cache of code; programs begin at `api`, hosts at `host`."""

__all__ = [
    "api",
    "callables",
    "catalog",
    "codegen",
    "erb",
    "errors",
    "evaluation",
    "functions",
    "host",
    "loading",
    "log",
    "syntax",
    "types",
    "values",
]
