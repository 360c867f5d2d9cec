"""Providers of `yumrepo`."""
