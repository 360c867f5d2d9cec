"""The command lines of `puppet`, described once by their parsers and their help: the source of shell completion and man pages."""
