"""A piece of a `concat_file`. Of the module concat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import Param, Ref, Type
from ..ral.attributes import as_list, text_of
from ..ral.core import CompleteCatalog


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

    def belongs_to(self, file: Any) -> bool:
        """Return whether it is a piece of a `concat_file`."""
        return self.target in (file.path, file.title) or bool(self.tag and self.tag in as_list(file.tag))

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        self._orphan = not any(other.declaration.name == "concat_file" and self.belongs_to(other) for other in catalog.order)

    def autorequire(self) -> Iterator[Ref]:
        if self._orphan:
            tag = f"or tag '{self.tag} " if self.tag else ""
            self.log("warning", f"Target Concat_file with path or title '{self.target}' {tag}not found in the catalog")
        return iter(())
