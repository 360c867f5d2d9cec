"""Serve catalogs, files and certificates."""

from dataclasses import replace

from master import cli

main = replace(cli.COMMAND, is_face=False, call=cli.main)
