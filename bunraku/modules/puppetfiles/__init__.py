"""Puppetfiles: what one declares, where its modules come from, and how they are put into an environment."""
