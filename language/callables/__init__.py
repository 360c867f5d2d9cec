"""Callable parts of the language: signatures, operators, conversions, formats."""
