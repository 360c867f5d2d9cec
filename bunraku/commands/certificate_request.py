"""`puppet certificate_request`, an indirection and no more, as Puppet 3.x has it."""

from ..modulefaces.builtin import indirection_command

main = indirection_command("certificate_request", "Find requests for certificates at the CA.", without=("save", "destroy")).spec
