"""A file put together from pieces of the catalog. Of the module concat."""

from __future__ import annotations

from ..ral import Ensure, Param, Type
from ..ral.core import CompleteCatalog
from .concat_fragment import ConcatFragment
from .file_line import absolute

FORMATS = ("plain", "yaml", "json", "json-array", "json-pretty", "json-array-pretty")
PASSED_ON = (
    "owner", "group", "mode", "replace", "backup", "selinux_ignore_defaults", "selrange", "selrole", "seltype", "seluser",
    "validate_cmd", "show_diff",
)  # fmt: skip


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
    ensure_newline = Param(bool, default=False, doc="Whether to end each piece with a newline.")
    format = Param(str, values=FORMATS, default="plain", doc="How the pieces are merged.")
    force = Param(bool, default=False, doc="Whether the first piece wins when two pieces have the same key; otherwise this is an error.")
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
