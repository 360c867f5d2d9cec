"""Providers of `cron`."""
