"""Fetch files of the master's filebucket."""

from ..modulefaces.builtin import indirection_command

main = indirection_command(
    "file",
    "Fetch files of the master's filebucket; 'puppet filebucket' does more.",
    "puppet file find sha256/b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
    indirection="file_bucket_file",
    without=("search", "save", "destroy"),
).spec
