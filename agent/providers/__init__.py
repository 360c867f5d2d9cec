"""Providers: how resources are read and changed on this machine, one folder a type."""
