"""Modules' types, providers and facts in Ruby, run by a program of ours in a process beside the agent; only where there is a `ruby`."""
