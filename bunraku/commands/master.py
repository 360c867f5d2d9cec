"""`puppet master`, which is the master's own."""

from dataclasses import replace

from master import cli

main = replace(cli.COMMAND, call=cli.main)
