"""Find classes and defined types of the master's manifests."""

from ..modulefaces.builtin import indirection_command

main = indirection_command(
    "resource_type",
    "Find classes, defined types and nodes of the master's manifests.",
    "puppet resource_type search 'apache.*'",
    without=("save", "destroy"),
).spec
