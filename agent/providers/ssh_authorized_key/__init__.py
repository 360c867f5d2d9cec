"""Providers of `ssh_authorized_key`."""
