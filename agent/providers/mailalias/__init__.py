"""Providers of `mailalias`."""
