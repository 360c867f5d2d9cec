"""
Lists the classes, modules, tasks and plans of an environment for tools. Answers are JSON in puppetserver's order of keys.

Files are read for each request; the classes of a manifest are remembered as long as its content stays the same.

Source: protocol reference 3.15.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from language.syntax.checker import Diagnostic
from language.syntax.checker.report import Strict
from language.syntax.source import Source
from shared.data import plainjson
from shared.errors import NotFound, PuppetError

from ..directories import Environments
from ..directory_environment import DirectoryEnvironment, compiler_host
from ..files.code_files import DiskFiles
from .classes import classes
from .key_order import sorted_as_clojure
from .tasks import WrongTask, plan, plans, task, tasks

MAX_ENVIRONMENTS = 16  # whose classes are remembered
ListedByPath = dict[str, tuple[bytes, dict[str, Any]]]
"""By path: the hash of a manifest, and the entry of its file in the list of classes."""


class Listings:
    """The lists of all environments. `log` gets severity and diagnostic, or level and text, of faults in manifests and modules."""

    def __init__(self, environments: Environments, log: Callable[[str, Diagnostic | str], None]) -> None:
        self.environments = environments
        self.log = log
        self._read: OrderedDict[str, ListedByPath] = OrderedDict()  # by environment, the least recently requested first

    def answer(self, question: Mapping[str, Any]) -> bytes:
        """
        Return the requested list as JSON: `of` is the kind of list, `environment` its environment ('': all). Raise NotFound for an
        unknown one.
        """
        environment: str = question["environment"]
        match question["of"]:
            case "classes":
                return plainjson.dumps(self.classes(environment))
            case "modules":
                return plainjson.dumps(self.modules(environment) if environment else list(self._all_modules()))
            case "tasks":
                return plainjson.dumps(list(self._tasks(environment)))
            case "task":
                return plainjson.dumps(task(compiler_host(self.environments, environment), question["module"], question["name"]))
            case "plans":
                where = [{"name": environment, "code_id": None}]
                return plainjson.dumps(
                    [{"name": name, "environment": where} for name in plans(compiler_host(self.environments, environment))]
                )
            case "plan":
                return plainjson.dumps(plan(compiler_host(self.environments, environment), question["module"], question["name"]))
            case unknown:
                raise NotFound(f"There is no list of {unknown}")

    def forget(self) -> None:
        """Forget all remembered classes."""
        self._read.clear()

    def classes(self, environment: str) -> dict[str, Any]:
        """Return the classes in each manifest of an environment, or the error in it, by file."""
        host = compiler_host(self.environments, environment)
        before = self._read.pop(environment, {})
        now: ListedByPath = {}
        files = [self._classes_of(path, before, now) for path in sorted(set(_manifests(host)))]
        self._read[environment] = now
        while len(self._read) > MAX_ENVIRONMENTS:
            self._read.popitem(last=False)
        return {"files": files, "name": environment}

    def modules(self, environment: str) -> dict[str, Any]:
        """Return the modules of an environment with their Forge name and version, where their metadata have them."""
        host = compiler_host(self.environments, environment)
        return {"modules": [self._module(host, root) for root in host.module_roots()], "name": environment}

    def _all_modules(self) -> Iterator[dict[str, Any]]:
        for name in self.environments.names():
            try:
                yield self.modules(name)
            except NotFound:
                continue  # it was removed a moment ago

    def _tasks(self, environment: str) -> Iterator[dict[str, Any]]:
        """Yield the valid tasks; log the errors of the others."""
        for name, metadata in tasks(compiler_host(self.environments, environment)):
            if isinstance(metadata, WrongTask):
                self.log("warning", f"The task {name} of environment {environment} is not listed: {metadata.message}")
                continue
            yield {
                "name": name,
                "private": sorted_as_clojure(metadata.get("private", False)),
                "description": sorted_as_clojure(metadata.get("description", "")),
                "environment": [{"name": environment, "code_id": None}],
            }

    def _classes_of(self, path: str, before: ListedByPath, now: ListedByPath) -> dict[str, Any]:
        try:
            content = DiskFiles().read(path)
            if content is None:
                return {"error": f"The file {path} does not exist", "path": path}
            digest = hashlib.sha256(content).digest()
            remembered = before.get(path)
            if remembered is None or remembered[0] != digest:
                remembered = digest, self._listed(path, content)
            now[path] = remembered
            return remembered[1]
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

    def _module(self, host: DirectoryEnvironment, root: str) -> dict[str, Any]:
        """Return one module. Invalid metadata count as none, because the classes of such a module are usable all the same."""
        name, version = root.rpartition("/")[2], None
        path = f"{root}/metadata.json"
        try:
            content = host.files.read(path)
            metadata = plainjson.loads(content) if content else {}
        except PuppetError as err:
            self.log("warning", f"{path} cannot be read: {err}")
            metadata = {}
        if isinstance(metadata, dict):
            if isinstance(metadata.get("name"), str) and metadata["name"]:
                name = metadata["name"].replace("-", "/")
            version = metadata["version"] if isinstance(metadata.get("version"), str) else None
        return {"name": name, "version": version}


def _manifests(host: DirectoryEnvironment) -> Iterator[str]:
    """Yield the paths of the main manifests and of those of all modules, without hidden ones."""
    files = host.files
    if host.manifest is not None and not files.is_folder(host.manifest) and files.exists(host.manifest):
        yield host.manifest
    folders = [host.manifest] if host.manifest is not None and files.is_folder(host.manifest) else []
    for folder in [*folders, *(f"{root}/manifests" for root in host.module_roots())]:
        for path in files.matching(folder, "**/*.pp"):
            if "/." not in path.removeprefix(folder):
                yield path
