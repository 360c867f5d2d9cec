"""The commands `puppet cert` and `puppet ca`."""
