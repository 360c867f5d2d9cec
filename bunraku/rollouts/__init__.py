"""The command `puppet rollout`: its start and its output."""
