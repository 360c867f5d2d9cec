"""Providers of `ini_setting`."""
