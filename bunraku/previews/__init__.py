"""The command `puppet preview`: its sides and its output."""
