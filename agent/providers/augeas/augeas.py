"""Changes by Augeas: written to a new file first as a trial, then made."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from shared.errors import ResourceError
from shared.filesystem.textdiff import Differ
from shared.ral import Confine, Provider, State
from shared.types.augeas import Augeas

from ...state.runlog import RunLog
from ..file.path_entries import open_entry, remove
from ..parsed.storage import open_file
from . import library
from .commands import Command, compare_values, parse, satisfies_clause
from .library import AugeasTree

_FUNCTIONS = {"mv": "mv", "move": "mv", "rename": "rename", "setm": "setm", "defvar": "defvar"}


def library_confine() -> Confine:
    """Return a confine that holds where the library is, which a package of the same run may install."""
    return Confine("the library libaugeas", lambda platform: library.available())


@dataclass(frozen=True, slots=True)
class AugeasContext:
    """The part of a run that the provider uses. `show_diff`: the setting of that name. `lenses`: folders of lenses from modules."""

    log: RunLog
    show_diff: Callable[[], bool] = lambda: False
    differ: Differ = field(default_factory=Differ)
    lenses: tuple[str, ...] = ()


class AugeasLibrary(
    Provider[Augeas], type=Augeas, name="augeas", confine=[library_confine()], features=("parse_commands", "execute_changes")
):
    """Loads a tree for each resource, in a thread, and loads it again for the real change, so that it has nothing from the trial."""

    def __init__(self, context: AugeasContext) -> None:
        self.context = context

    async def retrieve(self, resource: Augeas) -> State | None:
        parse(resource.changes, resource.prefix)  # raises errors in the commands before anything is loaded
        needed = await asyncio.to_thread(self._would_change, resource)
        return {"returns": "need_to_run" if needed else 0}

    async def set_returns(self, resource: Augeas, desired: Any, state: State | None) -> None:
        await asyncio.to_thread(self._execute, resource)

    # --- in a thread

    def _open_tree(self, resource: Augeas) -> AugeasTree:
        flags = (library.TYPE_CHECK if resource.type_check else 0) | (library.NO_MODL_AUTOLOAD if resource.incl else library.NO_LOAD)
        tree = AugeasTree(resource.root, ":".join((*resource.load_path, *self.context.lenses)), flags)
        try:
            errors = "/augeas//error"
            if resource.incl:
                tree.call("set", "/augeas/load/Xfm/lens", resource.lens)
                tree.call("set", "/augeas/load/Xfm/incl", resource.incl)
            else:
                errors = self._load_only_context(tree, resource)
            tree.call("load")
            if errors and tree.match(errors):
                self._log(resource, "warning", "Loading failed for one or more files, see debug for /augeas//error output")
            self._log_errors(resource, tree, "/augeas//error")
        except BaseException:
            tree.close()
            raise
        return tree

    def _load_only_context(self, tree: AugeasTree, resource: Augeas) -> str:
        """Load only the files that the context can be about; return the path of their errors ('' when all are loaded)."""
        if not re.fullmatch(r"/files/[^'\"\[\]]+", resource.context):
            return ""
        path = resource.context.removeprefix("/files").rstrip("/") + "/"
        others = f"/augeas/load/*['{path}' !~ glob(incl) + regexp('/.*')]"
        if len(tree.match(others)) >= len(tree.match("/augeas/load/*")):
            return ""
        tree.call("rm", others)
        return f"/augeas/files{path}error"

    def _would_change(self, resource: Augeas) -> bool:
        with self._open_tree(resource) as tree:
            if resource.onlyif and not self._condition_holds(tree, parse([resource.onlyif], resource.prefix)[0], resource):
                return False
            if resource.force:
                return True
            tree.call("set", "/augeas/save", "newfile")
            self._apply(tree, resource)
            self._save(tree, resource)
            root = resource.root.rstrip("/")
            saved = dict.fromkeys(root + (tree.get(path) or "").removeprefix("/files") for path in tree.match("/augeas/events/saved"))
            for path in saved:
                self._show(resource, path)
            return bool(saved)

    def _execute(self, resource: Augeas) -> None:
        with self._open_tree(resource) as tree:
            tree.call("set", "/augeas/save", "overwrite")
            self._apply(tree, resource)
            self._save(tree, resource)

    def _save(self, tree: AugeasTree, resource: Augeas) -> None:
        if tree.call("save") < 0:
            self._log_errors(resource, tree, "/augeas//error[. = 'put_failed']")
            raise ResourceError("Save failed, see debug output for details")

    def _show(self, resource: Augeas, path: str) -> None:
        """Log how a file will differ, and remove the trial's file."""
        new = f"{path}.augnew"
        try:
            if self.context.show_diff() and resource.show_diff and not resource.is_sensitive("changes"):
                self._log(resource, resource.loglevel, "\n" + _difference(self.context.differ, path, new))
        finally:
            with open_entry(new) as entry:
                remove(entry)

    # --- commands

    def _condition_holds(self, tree: AugeasTree, command: Command, resource: Augeas) -> bool:
        name = command[0]
        if name == "get":
            return compare_values(tree.get(command[1]) or "", command[2], command[3])
        if name in ("match", "values"):
            paths = tree.match(command[1])
            clause = parse([command[2]], "")[0]
            return satisfies_clause(tree.values(paths) if name == "values" else paths, clause)
        raise ResourceError(f"onlyif cannot ask '{name}'", hint="It begins with get, match or values.")

    def _apply(self, tree: AugeasTree, resource: Augeas) -> None:
        for command in parse(resource.changes, resource.prefix):
            name, arguments = command[0], command[1:]
            if _run_command(tree, name, arguments) < 0:
                raise ResourceError(f"Error sending command '{name}' with params {arguments}: {tree.problem()}")

    # --- telling

    def _log(self, resource: Augeas, level: str, message: str) -> None:
        self.context.log.log(level, message, source=f"{resource.ref}(provider={self.name})", tags=resource.origin.tags)

    def _log_errors(self, resource: Augeas, tree: AugeasTree, path: str) -> None:
        if not self.context.log.wants("debug"):
            return
        for error in tree.match(path):
            self._log(resource, "debug", f"{error} = {tree.get(error)}")
            for detail in tree.match(f"{error}/*"):
                self._log(resource, "debug", f"{detail} = {tree.get(detail)}")


def _difference(differ: Differ, old: str, new: str) -> str:
    """Return the difference of two files; the old one may not exist."""
    with ExitStack() as stack:
        lines = []
        for path in (old, new):
            fd = open_file(path)
            fd = os.open(os.devnull, os.O_RDONLY) if fd is None else fd
            stack.callback(os.close, fd)
            lines.append(fd)
        return differ.compare(lines[0], lines[1], labels=(old, new)).decode("utf-8", "replace")


def _run_command(tree: AugeasTree, name: str, arguments: list[Any]) -> int:
    """Carry out one command; return a negative number when it failed."""
    if name == "set":
        return tree.call("set", *arguments)
    if name in ("rm", "remove"):
        return tree.call("rm", *arguments)
    if name == "clear":
        return tree.call("set", arguments[0], None)
    if name == "clearm":
        return tree.call("setm", *arguments, None)
    if name == "touch":
        return 0 if tree.match(arguments[0]) else tree.call("set", arguments[0], None)
    if name in ("ins", "insert"):
        label, where, path = arguments
        if where not in ("before", "after"):
            raise ResourceError(f"Invalid value '{where}' for where param")
        return tree.call("insert", path, label, int(where == "before"))
    if name == "defnode":
        return tree.call("defnode", *arguments, 0)
    if name in _FUNCTIONS:
        return tree.call(_FUNCTIONS[name], *arguments)
    raise ResourceError(f"Command '{name}' is not supported in changes")
