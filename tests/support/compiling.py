"""For tests: a manifest in memory, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from tests.support.memory_files import MemoryFiles

__all__ = ["ROOT", "Compiled", "compiled", "world_of"]

ROOT = "/env"


@dataclass
class Compiled:
    """A catalog as plain data, and what was logged on the way."""

    catalog: dict[str, Any]
    logs: list[LogEntry] = field(default_factory=list)

    @property
    def refs(self) -> list[str]:
        """All resources but the three that are always there."""
        found = [f"{each['type']}[{each['title']}]" for each in self.catalog["resources"]]
        return [ref for ref in found if ref not in ("Stage[main]", "Class[Settings]", "Class[main]")]

    def resource(self, ref: str) -> dict[str, Any]:
        return next(each for each in self.catalog["resources"] if f"{each['type']}[{each['title']}]" == ref)

    def parameters(self, ref: str) -> dict[str, Any]:
        found: dict[str, Any] = self.resource(ref).get("parameters", {})
        return found

    def containers(self, ref: str) -> list[str]:
        return [edge["source"] for edge in self.catalog["edges"] if edge["target"] == ref]

    @property
    def notices(self) -> list[str]:
        return [entry.message for entry in self.logs if entry.level == "notice"]


def world_of(manifest: str, files: Mapping[str, str] | None = None, settings: Mapping[str, Any] | None = None) -> DirectoryEnvironment:
    """An environment whose site manifest is `manifest`; `files` by their path below it."""
    everything = {f"{ROOT}/manifests/site.pp": manifest} | {f"{ROOT}/{path}": text for path, text in (files or {}).items()}
    given = {"strict": "warning", "strict_variables": True, **(settings or {})}
    return DirectoryEnvironment(
        Environment("production", ROOT, (f"{ROOT}/modules",), f"{ROOT}/manifests"), MemoryFiles(everything), settings=given
    )


def compiled(
    manifest: str,
    files: Mapping[str, str] | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    classes: Mapping[str, Mapping[str, Any] | None] | None = None,
    settings: Mapping[str, Any] | None = None,
    certname: str = "node1.example.com",
    world: DirectoryEnvironment | None = None,
    cache: CodeCache | None = None,
) -> Compiled:
    """
    The catalog of a node for a manifest.

    Raises:
        CompileError: what the compiler raises.
    """
    world = world or world_of(manifest, files, settings)
    logs: list[LogEntry] = []
    cache = cache or CodeCache()
    loader = Loader(
        world,
        NAMES,
        cache,
        log=lambda level, found: logs.append(LogEntry(level, found.message, found.where)),
        builtins=all_functions(),
    )
    facts = facts or {}
    node = NodeInput(
        certname,
        facts=facts,
        parameters={**facts, **(parameters or {})},
        classes=classes or {},
        trusted={"certname": certname},
    )
    try:
        return Compiled(compile_catalog(world, loader, node, version=1, log=logs.append), logs)
    finally:
        cache.save()
