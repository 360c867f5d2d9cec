"""The master that the endpoints are asked of."""

from tests.support.shelved_master import ca, master, serve, termini

__all__ = ["ca", "master", "serve", "termini"]
