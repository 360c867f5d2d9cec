"""Providers of the type `user`."""
