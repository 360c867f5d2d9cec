"""The master that has an auth.conf."""

from tests.support.shelved_master import ca, master, serve, termini

__all__ = ["ca", "master", "serve", "termini"]
