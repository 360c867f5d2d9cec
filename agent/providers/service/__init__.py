"""Providers of the type `service`."""
