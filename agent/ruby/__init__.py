"""Modules' types, providers and facts in Ruby, run by our own program in a separate process; only if `ruby` is installed."""
