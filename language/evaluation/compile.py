"""From a node to the plain data of its catalog."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..catalog.wire import wire_catalog
from ..host import CompilerHost, NodeInput
from ..loading.loader import Loader
from ..log import LogEntry
from .compilation import Compilation
from .dependencies import NodeDependencies


def compile_catalog(
    host: CompilerHost,
    loader: Loader,
    node: NodeInput,
    *,
    version: int | str,
    log: Callable[[LogEntry], None],
    rich: bool = True,
    exported: bool = False,
    texts: bool = False,
    dependencies: NodeDependencies | None = None,
) -> dict[str, Any]:
    """
    Return the catalog of a node, as plain data: `protocol reference 3.4`, without virtual resources, and those that are exported.

    Args:
        version: what `config_version` says, or seconds since the epoch.
        rich: values that JSON has not are encoded as `__ptype` maps; else turned into text.
        exported: exported resources stay in it, those that nobody collected marked as `virtual`.
        texts: resources have their rich values as text as well, in `texts`.
        dependencies: notes what is read of the node.
    Raises:
        CompileError: located, in the reference's words.
    """
    compilation = Compilation(host, loader, node, log, dependencies=dependencies)
    with raised_recursion_limit():
        compilation.compile()
        try:
            return wire_catalog(compilation, version=version, rich=rich, exported=exported, texts=texts)
        finally:
            compilation.dispose()


RECURSION = 10_000
"""Python frames, some eight for a class that includes another; twice as many still fit into a stack of 8 MiB."""


@contextmanager
def raised_recursion_limit() -> Iterator[None]:
    """Raise the recursion limit in the block, for classes and functions nest more deeply than Python's usual limit takes."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
