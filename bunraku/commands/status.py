"""Ask whether the master answers."""

from ..modulefaces.builtin import indirection_command

main = indirection_command(
    "status",
    "Check whether the master answers.",
    "puppet status find master.example.com --server master.example.com",
    without=("search", "save", "destroy"),
).spec
