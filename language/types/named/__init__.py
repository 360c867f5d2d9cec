"""Types that stand for others by a name: aliases, type sets, and the aliases that are built in."""
