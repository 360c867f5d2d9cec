"""The command `puppet preview`: its sides, what it prints."""
