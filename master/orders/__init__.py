"""Runs on demand: the agents that wait for an order, and the runs that `puppet run` orders."""
