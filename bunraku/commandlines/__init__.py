"""The command lines of `puppet`, described once by what parses them and by their help: shell completion and man pages are made of that."""
