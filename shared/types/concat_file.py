"""`concat_file` and `concat_fragment`: a file put together from pieces of the catalog. Of the module concat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import Ensure, Param, Ref, Type
from ..ral.attributes import as_list, text_of
from ..ral.core import CompleteCatalog
from .file_line import absolute

FORMATS = ("plain", "yaml", "json", "json-array", "json-pretty", "json-array-pretty")
PASSED_ON = (
    "owner", "group", "mode", "replace", "backup", "selinux_ignore_defaults", "selrange", "selrole", "seltype", "seluser",
    "validate_cmd", "show_diff",
)  # fmt: skip


def _order(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("$order is not a string or integer.")
    if re.search(r"[:\n/]", text_of(value)):
        raise ValueError("Order cannot contain '/', ':', or '\\n'.")


def _text(value: Any) -> None:
    if not isinstance(value, str | bytes):
        raise ValueError("Content must be a String")


class ConcatSources(Param[list[str] | None]):
    """One or more URLs; the first that exists counts."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        values = as_list(raw)
        if not all(isinstance(value, str) for value in values):
            raise ValueError("Content must be a String or Array")
        return [f"file://{url}" if url.startswith("/") else url for url in values]


class ConcatFragment(Type, name="concat_fragment", providers=False):
    """A piece of a `concat_file`; it does nothing by itself."""

    name = Param(str, namevar=True, doc="What the piece is called; pieces of the same order are sorted by it.")
    target = Param(str, doc="Path or title of the file it belongs to.")
    content = Param(object, check=_text, doc="The piece itself.")
    source = ConcatSources(object, doc="Where the piece comes from.")
    order = Param(str, check=_order, default="10", doc="Where in the file it goes.")
    tag = Param(str, doc="The tag of the file it belongs to.")  # type: ignore[assignment]

    _orphan = False

    def validate(self) -> None:
        if not self.target and not self.tag:
            raise ValueError("No 'target' or 'tag' set")
        if self.source is None and self.content is None:
            raise ValueError("Set either 'source' or 'content'")
        if self.source is not None and self.content is not None:
            raise ValueError("Can't use 'source' and 'content' at the same time")

    def belongs_to(self, file: ConcatFile) -> bool:
        return self.target in (file.path, file.title) or bool(self.tag and self.tag in as_list(file.tag))

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        self._orphan = not any(isinstance(other, ConcatFile) and self.belongs_to(other) for other in catalog.order)

    def autorequire(self) -> Iterator[Ref]:
        if self._orphan:
            tag = f"or tag '{self.tag} " if self.tag else ""
            self.log("warning", f"Target Concat_file with path or title '{self.target}' {tag}not found in the catalog")
        return iter(())


class ConcatFile(Type, name="concat_file", providers=False):
    """Makes a file of all pieces that name it."""

    ensure = Ensure(str, values=("present", "absent"), default="present", doc="Whether it should be there.")

    path = Param(str, namevar=True, check=absolute, doc="The file.")
    tag = Param(object, doc="A tag, or several, that pieces may name in place of the path.")  # type: ignore[assignment]
    owner = Param(object, doc="As of the type file.")
    group = Param(object, doc="As of the type file.")
    mode = Param(str, doc="As of the type file.")
    order = Param(str, values=("alpha", "numeric"), default="numeric", doc="How the pieces' orders are compared.")
    backup = Param(object, doc="As of the type file.")
    replace = Param(bool, default=True, doc="As of the type file.")
    validate_cmd = Param(str, doc="As of the type file.")
    ensure_newline = Param(bool, default=False, doc="Whether each piece is made to end with a newline.")
    format = Param(str, values=FORMATS, default="plain", doc="How the pieces are merged.")
    force = Param(bool, default=False, doc="Whether the same key in two pieces is taken from the first; otherwise it is an error.")
    selinux_ignore_defaults = Param(bool, doc="As of the type file.")
    selrange = Param(str, doc="As of the type file.")
    selrole = Param(str, doc="As of the type file.")
    seltype = Param(str, doc="As of the type file.")
    seluser = Param(str, doc="As of the type file.")
    show_diff = Param(bool, doc="As of the type file.")
    create_empty_file = Param(bool, default=True, doc="Whether there is a file when no piece has any content.")

    fragments: tuple[ConcatFragment, ...] = ()

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        self.fragments = tuple(other for other in catalog.order if isinstance(other, ConcatFragment) and other.belongs_to(self))
