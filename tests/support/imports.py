"""The graph of imports between the modules of this project, read from the sources without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
PACKAGES = ("shared", "certs", "httpd", "language", "ca", "environments", "store", "master", "agent", "bunraku")

Kind = Literal["eager", "hidden", "typing"]
"""When an import runs: with its module; when a function is called; never, because only type checkers read it."""


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """One module of ours that imports another."""

    module: str
    target: str
    kind: Kind


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file. Several tests read the same files."""
    return ast.parse(path.read_text("utf-8"))


def sources(package: str) -> list[Path]:
    """Return all Python files of a package, given as its path below the root of the project."""
    return sorted((ROOT / package).rglob("*.py"))


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules of the packages by their dotted names."""
    return {_name(path): path for package in PACKAGES for path in sources(package)}


@cache
def imports() -> frozenset[Import]:
    """Return all imports of modules of ours by modules of ours."""
    return frozenset(found for name, path in modules().items() for found in _imports_of(name, path) if found.target != name)


def cycles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of nodes that lead back to themselves, each sorted by name (Tarjan's algorithm)."""
    graph: dict[str, list[str]] = {}
    for source, target in sorted(edges):
        graph.setdefault(source, []).append(target)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for node in list(graph):
        if node not in index:
            visit(node)
    return groups


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(name: str, path: Path) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    pending: list[tuple[ast.AST, Kind]] = [(parsed(path), "eager")]
    while pending:
        node, kind = pending.pop()
        for child in ast.iter_child_nodes(node):
            inner = kind
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and kind == "eager":
                inner = "hidden"
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inner = "typing"
            elif isinstance(child, ast.ImportFrom):
                yield from (Import(name, target, kind) for target in _targets(child, package))
            elif isinstance(child, ast.Import):
                yield from (Import(name, alias.name, kind) for alias in child.names if alias.name in modules())
            pending.append((child, inner))


def _targets(statement: ast.ImportFrom, package: str) -> Iterator[str]:
    """Yield the modules that a `from … import …` reads: a submodule where one has the imported name, else the module itself."""
    base = statement.module or ""
    if statement.level:
        parents = package.split(".")
        above = parents[: len(parents) - statement.level + 1]
        base = ".".join([*above, *([statement.module] if statement.module else [])])
    for alias in statement.names:
        target = f"{base}.{alias.name}"
        if target not in modules():
            target = base
        if target in modules():
            yield target
