"""Fetch the CA's revocation list."""

from ..modulefaces.builtin import indirection_command

main = indirection_command(
    "certificate_revocation_list",
    "Fetch the CA's revocation list.",
    "puppet certificate_revocation_list find ca",
    without=("search", "save", "destroy"),
).spec
