"""Kinds of attributes that several types have."""
