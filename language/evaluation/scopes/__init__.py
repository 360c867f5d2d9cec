"""Scopes: where variables are looked up, those that are found again by name, and the defaults of parameters."""
