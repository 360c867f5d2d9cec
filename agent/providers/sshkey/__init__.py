"""Providers of `sshkey`."""
