"""A file in a filebucket, by its checksum."""

from __future__ import annotations

from ..indirector.core import Indirection, Stream


class FileBucketFile(Stream):
    """A stored file; `name` is `<algorithm>/<hex>[/<original path>]`; the bytes come as chunks."""


FILE_BUCKET_FILE = Indirection(
    name="file_bucket_file",
    model=FileBucketFile,
    formats=("s", "binary"),
    options=frozenset({"diff_with", "list_all", "fromdate", "todate"}),
    limit="max_bucket_body",
    doc="Backups of files, by their checksum.",
)
