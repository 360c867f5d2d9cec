"""The `puppet` command and `puppet apply`: the only place where master and agent meet."""
