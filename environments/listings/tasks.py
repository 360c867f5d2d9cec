"""
Lists the tasks and plans of modules: the programs with their metadata, and the names of Bolt's plans. None of them is run here.

Source: protocol reference 3.15.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, NotFound, PuppetError

from ..directory_environment import DirectoryEnvironment
from ..files.code_files import DiskFiles
from .key_order import sorted_as_clojure

MOUNTS = ("files", "lib", "scripts", "tasks")
MAX_FILES = 10_000  # in one task

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_WORDS = (
    "and application attr case class consumes default else elsif environment false function if import in inherits node or private "
    "produces site true type undef unless any array boolean catalogentry collection callable data enum float hash integer numeric "
    "optional pattern resource runtime scalar string struct tuple variant"
)
_RESERVED = frozenset(_WORDS.split())  # these cannot be names of plans


@dataclass(eq=False)
class WrongTask(Exception):
    """A fault in a task, in puppetserver's words."""

    message: str
    kind: str = "invalid-metadata"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        return {"kind": f"puppet.tasks/{self.kind}", "msg": self.message, "details": dict(self.details)}


def tasks(host: DirectoryEnvironment) -> Iterator[tuple[str, dict[str, Any] | WrongTask]]:
    """Yield the full name of each task with its metadata or its fault."""
    for root in host.module_roots():
        files = _task_files(root)
        for name in dict.fromkeys(path.stem for path in files):
            full = _full_name(root, name)
            try:
                metadata = _metadata(files, name, full)
                _files(host, root, full, name, metadata, files)
                yield full, metadata
            except WrongTask as err:
                yield full, err


def task(host: DirectoryEnvironment, module: str, name: str) -> dict[str, Any]:
    """
    Return a task's metadata, full name and files, or `error`.

     Each file has filename, size_bytes, sha256 and `place`: the folder of modules, the module, the folder in it, and the path in that.

     Raises:
         NotFound: there is no such module or task.
    """
    root = _root(host, module)
    files = _task_files(root)
    if name not in {path.stem for path in files}:
        raise NotFound(f"Could not find task '{name}'")
    full = _full_name(root, name)
    try:
        metadata = _metadata(files, name, full)
        files_of_task = _files(host, root, full, name, metadata, files)
        return {
            "metadata": sorted_as_clojure(metadata),
            "name": full,
            "files": [_describe(file_name, path) for file_name, path in files_of_task],
        }
    except WrongTask as err:
        return {"error": err.data}


def plans(host: DirectoryEnvironment) -> Iterator[str]:
    """Yield the full names of all plans."""
    for root in host.module_roots():
        for name in _plan_names(root):
            yield _full_name(root, name)


def plan(host: DirectoryEnvironment, module: str, name: str) -> dict[str, Any]:
    """Return a plan's full name, with empty metadata; raise NotFound for an unknown module or plan."""
    root = _root(host, module)
    if name not in _plan_names(root):
        raise NotFound(f"Could not find plan '{name}'")
    return {"metadata": {}, "name": _full_name(root, name)}


def _root(host: DirectoryEnvironment, module: str) -> str:
    root = host.module_root(module) if _NAME.fullmatch(module) else None
    if root is None:
        raise NotFound(f"Could not find module '{module}'")
    return root


def _full_name(root: str, name: str) -> str:
    module = root.rpartition("/")[2]
    return module if name == "init" else f"{module}::{name}"


def _plan_names(root: str) -> list[str]:
    paths = [Path(name) for name in DiskFiles().names(f"{root}/plans")]
    right = [path.stem for path in paths if path.suffix in (".pp", ".yaml") and _NAME.fullmatch(path.stem)]
    return [name for name in dict.fromkeys(right) if name not in _RESERVED]


def _task_files(root: str) -> list[Path]:
    """Return the files that may belong to tasks: programs and metadata."""
    folder = Path(root, "tasks")
    paths = [folder / name for name in DiskFiles().names(str(folder))]
    return [path for path in paths if _NAME.fullmatch(path.stem) and path.suffix not in (".conf", ".md") and path.is_file()]


def _metadata(files: Sequence[Path], name: str, full: str) -> dict[str, Any]:
    path = next((path for path in files if path.stem == name and path.suffix == ".json"), None)
    try:
        content = DiskFiles().read(str(path)) if path is not None else None
    except PuppetError as err:
        raise WrongTask(f"Error reading metadata: {err.message}", "unreadable-metadata") from err
    if not content:
        return {}
    try:
        metadata = plainjson.loads(content)
    except BadData as err:
        raise WrongTask(err.message, "unparseable-metadata") from err
    if not isinstance(metadata, dict):
        raise WrongTask(f"Task metadata for task {full} is not an object")
    return metadata


def _files(
    host: DirectoryEnvironment, root: str, full: str, name: str, metadata: Mapping[str, Any], files: Sequence[Path]
) -> list[tuple[str, Path]]:
    """Return the files of a task: its programs, by their file names, then other files of modules, by module and path."""
    programs = [path for path in files if path.suffix != ".json"]
    parts = [(path.name, path) for path in _programs(root, full, name, metadata, programs)]
    names = _file_names(metadata.get("files", []))
    for entry in metadata.get("implementations", []):
        names += _file_names(entry.get("files", []))
    for entry in dict.fromkeys(names):
        parts += _extra(host, entry)
        if len(parts) > MAX_FILES:
            raise WrongTask(f"Task {full} consists of more than {MAX_FILES} files")
    return parts


def _programs(root: str, full: str, name: str, metadata: Mapping[str, Any], programs: Sequence[Path]) -> list[Path]:
    if "implementations" not in metadata:
        own = [path for path in programs if path.stem == name]
        if not own:
            text = f"No source besides task metadata was found in directory {root}/tasks for task {full}"
            raise WrongTask(text, "no-implementation")
        if len(own) > 1:
            text = f"Multiple executables were found in directory {root}/tasks for task {full}"
            raise WrongTask(f"{text}; define 'implementations' in metadata to differentiate between them", "multiple-implementations")
        return own
    implementations = metadata["implementations"]
    if not isinstance(implementations, list) or not all(isinstance(implementation, dict) for implementation in implementations):
        raise WrongTask(f"Task metadata for task {full} does not specify implementations as an array")
    chosen = []
    for implementation in implementations:
        if not isinstance(implementation.get("requirements", []), list | None):
            raise WrongTask(f"Task metadata for task {full} does not specify requirements as an array")
        path = next((path for path in programs if path.name == implementation.get("name")), None)
        if path is None:
            text = f"Task metadata for task {full} specifies missing implementation {implementation.get('name')}"
            raise WrongTask(text, "missing-implementation", {"missing": [implementation.get("name")]})
        chosen.append(path)
    return chosen


def _file_names(files: Any) -> list[str]:
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        received = files if isinstance(files, str) else plainjson.dumps(files).decode()
        raise WrongTask(f"The 'files' task metadata expects an array, got {received}.")
    return list(files)


def _extra(host: DirectoryEnvironment, entry: str) -> list[tuple[str, Path]]:
    """Return the file, or the files of the folder, that metadata name as `module/mount/path`."""
    module, _, rest = entry.partition("/")
    mount, _, inside = rest.partition("/")
    root = host.module_root(module) if _NAME.fullmatch(module) else None
    if root is None:
        raise WrongTask(f"Could not find module {module} containing task file {inside}")
    if mount not in MOUNTS:
        raise WrongTask(f"Files must be saved in module directories that Puppet makes available via mount points: {', '.join(MOUNTS)}")
    path = f"{root}/{mount}/{inside}".rstrip("/")
    if os.path.normpath(path) != path or "\0" in path:
        raise WrongTask("File pathnames cannot include relative paths")
    files = DiskFiles()
    folder = files.is_folder(path)
    if not files.exists(path) or (entry.endswith("/") and not folder):
        raise WrongTask(f"Could not find {root}/{mount}/{inside} on disk", "invalid-file")
    if folder and not entry.endswith("/"):
        raise WrongTask(f"Directories specified in task metadata must include a trailing slash: {entry}")
    paths = files.matching(path, "**/*") if folder else [path]
    visible = [path_found for path_found in paths if "/." not in path_found.removeprefix(path)]
    return [(module + path_found.removeprefix(root), Path(path_found)) for path_found in visible]


def _describe(name: str, path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.seek(0, os.SEEK_END)
    except OSError as err:
        raise WrongTask(f"Could not read {path}: {err.strerror}", "invalid-file") from err
    parts = name.split("/") if "/" in name else [*path.parts[-3:]]
    module, mount, inside = parts[0], parts[1], "/".join(parts[2:])
    folder = str(path).removesuffix(f"/{module}/{mount}/{inside}").rpartition("/")[2]
    return {"filename": name, "sha256": digest, "size_bytes": size, "place": [folder, module, mount, inside]}
