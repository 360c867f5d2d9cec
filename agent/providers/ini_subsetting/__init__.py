"""Providers of `ini_subsetting`."""
