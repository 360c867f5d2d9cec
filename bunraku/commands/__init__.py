"""The subcommands of `puppet`, a module for each."""
