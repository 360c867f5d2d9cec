"""Descriptions of types: why a value does not match a type, and the attributes that inspection shows."""
