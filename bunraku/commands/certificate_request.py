"""Find requests for certificates at the CA."""

from ..modulefaces.builtin import indirection_command

main = indirection_command("certificate_request", "Find requests for certificates at the CA.", without=("save", "destroy")).spec
