"""
What tools ask of an environment: its classes, modules, tasks, plans. Answers are JSON in puppetserver's order of keys.

Files are read anew for each question; what was made of a manifest is kept while its content is the same. Source: protocol reference 3.15.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.data import plainjson
from shared.errors import NotFound, PuppetError

from ..compiler.syntax.checker import Diagnostic
from ..compiler.syntax.checker.findings import Strict
from ..compiler.syntax.source import Source
from ..environments.directories import Environments
from ..environments.directory_environment import DirectoryEnvironment
from ..files.code_files import DiskFiles
from .classes import classes
from .key_order import sorted_as_clojure
from .tasks import WrongTask, plan, plans, task, tasks

__all__ = ["Listings"]

MAX_ENVIRONMENTS = 16  # of which it is kept what was read
Read = dict[str, tuple[bytes, dict[str, Any]]]
"""By path: the hash of a manifest, and what is listed of it."""


class Listings:
    """`log` is told of severity and finding, or of level and text: what is odd about manifests and modules."""

    def __init__(self, environments: Environments, log: Callable[[str, Diagnostic | str], None]) -> None:
        self.environments = environments
        self.log = log
        self._read: OrderedDict[str, Read] = OrderedDict()  # by environment, those asked for longest ago first

    def answer(self, question: Mapping[str, Any]) -> bytes:
        """The JSON that is asked for: what the list is `of`, in which `environment` ('': in all). NotFound: there is no such."""
        environment: str = question["environment"]
        match question["of"]:
            case "classes":
                return plainjson.dumps(self.classes(environment))
            case "modules":
                return plainjson.dumps(self.modules(environment) if environment else list(self._all_modules()))
            case "tasks":
                return plainjson.dumps(list(self._tasks(environment)))
            case "task":
                return plainjson.dumps(task(self._world(environment), question["module"], question["name"]))
            case "plans":
                where = [{"name": environment, "code_id": None}]
                return plainjson.dumps([{"name": name, "environment": where} for name in plans(self._world(environment))])
            case _:
                return plainjson.dumps(plan(self._world(environment), question["module"], question["name"]))

    @property
    def kept(self) -> int:
        """Environments of which something is kept."""
        return len(self._read)

    def forget(self) -> None:
        """Drop what is kept."""
        self._read.clear()

    def classes(self, environment: str) -> dict[str, Any]:
        """The classes in every manifest of an environment, or what is wrong with it, by file."""
        world = self._world(environment)
        before = self._read.pop(environment, {})
        now: Read = {}
        files = [self._classes_of(path, before, now) for path in sorted(set(_manifests(world)))]
        self._read[environment] = now
        while len(self._read) > MAX_ENVIRONMENTS:
            self._read.popitem(last=False)
        return {"files": files, "name": environment}

    def modules(self, environment: str) -> dict[str, Any]:
        """The modules of an environment: what they are called on the Forge, and their version, where their metadata say so."""
        world = self._world(environment)
        return {"modules": [self._module(world, root) for root in world.module_roots()], "name": environment}

    def _all_modules(self) -> Iterator[dict[str, Any]]:
        for name in self.environments.names():
            try:
                yield self.modules(name)
            except NotFound:
                continue  # it went a moment ago

    def _tasks(self, environment: str) -> Iterator[dict[str, Any]]:
        """Those that can be run; what is wrong with others is logged."""
        for name, found in tasks(self._world(environment)):
            if isinstance(found, WrongTask):
                self.log("warning", f"The task {name} of environment {environment} is not listed: {found.message}")
                continue
            yield {
                "name": name,
                "private": sorted_as_clojure(found.get("private", False)),
                "description": sorted_as_clojure(found.get("description", "")),
                "environment": [{"name": environment, "code_id": None}],
            }

    def _world(self, environment: str) -> DirectoryEnvironment:
        found = self.environments.read(environment)
        return DirectoryEnvironment(environment, found.root, DiskFiles(), modulepath=found.modulepath, manifest=found.manifest)

    def _classes_of(self, path: str, before: Read, now: Read) -> dict[str, Any]:
        try:
            content = DiskFiles().read(path)
            if content is None:
                return {"error": f"The file {path} does not exist", "path": path}
            digest = hashlib.sha256(content).digest()
            kept = before.get(path)
            if kept is None or kept[0] != digest:
                kept = digest, self._listed(path, content)
            now[path] = kept
            return kept[1]
        except PuppetError as err:
            return {"error": str(err), "path": path}

    def _listed(self, path: str, content: bytes) -> dict[str, Any]:
        strict: Strict = self.environments.settings.compiler.get("strict") or "warning"
        try:
            source = Source(content.decode("utf-8"), path)
            return {"classes": classes(source, strict=strict, log=self.log), "path": path}
        except UnicodeDecodeError as err:
            return {"error": f"{path} is not valid UTF-8: {err.reason} at octet {err.start}", "path": path}
        except PuppetError as err:
            return {"error": str(err), "path": path}

    def _module(self, world: DirectoryEnvironment, root: str) -> dict[str, Any]:
        """A module whose metadata are wrong is one without: its classes are used all the same."""
        name, version = root.rpartition("/")[2], None
        path = f"{root}/metadata.json"
        try:
            content = world.files.read(path)
            metadata = plainjson.loads(content) if content else {}
        except PuppetError as err:
            self.log("warning", f"{path} cannot be read: {err}")
            metadata = {}
        if isinstance(metadata, dict):
            if isinstance(metadata.get("name"), str) and metadata["name"]:
                name = metadata["name"].replace("-", "/")
            version = metadata["version"] if isinstance(metadata.get("version"), str) else None
        return {"name": name, "version": version}


def _manifests(world: DirectoryEnvironment) -> Iterator[str]:
    """The paths of the main manifests and of those of all modules, without those that are hidden."""
    files = world.files
    if world.manifest is not None and not files.is_folder(world.manifest) and files.exists(world.manifest):
        yield world.manifest
    folders = [world.manifest] if world.manifest is not None and files.is_folder(world.manifest) else []
    for folder in [*folders, *(f"{root}/manifests" for root in world.module_roots())]:
        for path in files.matching(folder, "**/*.pp"):
            if "/." not in path.removeprefix(folder):
                yield path
