"""The output of `puppet module list`: modules by folder, as a tree of their dependencies, and the unmet dependencies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import with_v
from .installed import InstalledModule, InstalledModules, UnmetDependency

Paint = Callable[[str, str], str]  # name of a colour, text: the coloured text
_REASONS = ("non_semantic_version", "version_mismatch", "missing")


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A line of a tree and those below it."""

    text: str
    children: tuple[TreeNode, ...] = ()


def drawn(nodes: Sequence[TreeNode], level: int = 0) -> str:
    """Return nodes as a tree of lines."""
    text, indent = "", "  " * level
    for node in nodes:
        is_last = node is nodes[-1]
        text += f"{indent}{'└' if is_last else '├'}─{'┬' if node.children else '─'} {node.text}\n"
        below = drawn(node.children, level + 1)
        text += below if is_last else re.sub(rf"^{indent} ", f"{indent}│", below, flags=re.MULTILINE)
    return text


class ModuleListing:
    """
    The listing of a modulepath.

    Args:
        paint: colours a text.
        origin_of: says where the module in a folder comes from; '' for nothing to be shown.
        folders: says of folders of the modulepath why they are in it.
    """

    def __init__(
        self,
        installed: InstalledModules,
        paint: Paint = lambda colour, text: text,
        origin_of: Callable[[Path], str] = lambda path: "",
        folders: Mapping[Path, str] | None = None,
    ) -> None:
        self._installed = installed
        self._paint = paint
        self._origin_of = origin_of
        self._folders = folders or {}
        self.unmet: Mapping[str, Mapping[str, list[UnmetDependency]]] = self._unmet()

    def _unmet(self) -> dict[str, dict[str, list[UnmetDependency]]]:
        """Return the unmet dependencies, by reason and by the name of the required module."""
        found: dict[str, dict[str, list[UnmetDependency]]] = {reason: {} for reason in _REASONS}
        for module in sorted(self._installed.by_folder.values(), key=lambda module: module.folder):
            for unmet in sorted(self._installed.unmet(module), key=lambda unmet: unmet.dependency.name):
                found[unmet.reason].setdefault(unmet.dependency.name, []).append(unmet)
        return found

    def warnings(self) -> list[str]:
        """Return the warnings about unmet dependencies."""
        texts = []
        for reason in _REASONS:
            for name, unmet in sorted(self.unmet[reason].items()):
                first = {
                    "version_mismatch": f"Module '{name}' (v{unmet[-1].installed}) fails to meet some dependencies:",
                    "non_semantic_version": f"Non semantic version dependency {name} (v{unmet[-1].installed}):",
                    "missing": f"Missing dependency '{name}':",
                }[reason]
                texts.append("\n".join((first, *(f"  {one}" for one in unmet))))
        return texts

    def text(self, *, tree: bool) -> str:
        """Return the listing, folder by folder; `tree`: with each module's dependencies below it."""
        text = ""
        for folder, modules in self._installed.by_path.items():
            why = f"  ({self._folders[folder]})" if folder in self._folders else ""
            text += f"{folder}{'' if modules else ' (no modules installed)'}{why}\n"
            text += drawn(self._tree(folder, modules) if tree else self._list(folder, modules))
        return text

    def data(self, origin_of: Callable[[Path], Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the listing for scripts; `origin_of` returns the origin of the module in a folder, in addition to its metadata."""
        return [
            {"path": str(folder), "modules": [self._module_data(module, origin_of(module.path)) for module in modules]}
            for folder, modules in self._installed.by_path.items()
        ]

    def _module_data(self, module: InstalledModule, origin: Mapping[str, Any]) -> dict[str, Any]:
        unmet = {problem.dependency.name: problem.reason for problem in self._installed.unmet(module)}
        return {
            "name": module.name or None,
            "folder": module.folder,
            "version": module.version or None,
            "path": str(module.path),
            "in_use": self._installed.by_folder[module.folder] is module,
            "dependencies": [
                {"name": dependency.name, "version_requirement": dependency.text, "unmet": unmet.get(dependency.name)}
                for dependency in module.dependencies
            ],
            "required_by": [other.name for other, _ in self._installed.needed_by(module)],
            **origin,
        }

    def _list(self, folder: Path, modules: Iterable[InstalledModule]) -> list[TreeNode]:
        nodes = []
        for module in sorted(modules, key=lambda module: module.shown_name.replace("-", "/", 1)):
            is_invalid = module.name in self.unmet["version_mismatch"]
            nodes.append(TreeNode(self._text_of(module, folder, is_invalid)))
        return nodes

    def _tree(self, folder: Path, modules: Iterable[InstalledModule]) -> Sequence[TreeNode]:
        """Return those that fewest others need at the top; there may be cycles."""
        seen: set[str] = set()

        def nodes(modules: Iterable[InstalledModule], parent: InstalledModule | None, above: tuple[InstalledModule, ...]) -> list[TreeNode]:
            found = []
            for module in modules:
                if module.shown_name in seen:
                    continue
                seen.add(module.shown_name)
                text = self._text_of(module, folder, self._is_invalid_below(module, parent))
                missing = [
                    TreeNode(
                        f"{self._paint('bg_red', 'UNMET DEPENDENCY')} {unmet.dependency.name} ({self._paint('cyan', unmet.shown_range)})"
                    )
                    for unmet in self._installed.unmet(module)
                    if unmet.reason == "missing"
                ]
                below = nodes(self._installed.meeting(module), module, (*above, module)) if module not in above else []
                found.append(TreeNode(text, (*missing, *below)))
            return found

        return nodes(sorted(modules, key=lambda module: len(self._installed.needed_by(module))), None, ())

    def _is_invalid_below(self, module: InstalledModule, parent: InstalledModule | None) -> bool:
        """Return whether a module does not satisfy its parent; as in Puppet, only the last such parent counts."""
        problems = self.unmet["version_mismatch"].get(module.name, [])
        return (
            parent is not None
            and bool(problems)
            and (problems[-1].module.name, problems[-1].module.version) == (parent.name, parent.version)
        )

    def _text_of(self, module: InstalledModule, folder: Path, is_invalid: bool) -> str:
        version = self._paint("cyan", f"v{module.version}" if module.version else "???")
        text = f"{module.shown_name} ({version})"
        if module.directory != folder:
            text += f" [{module.directory}]"
        if is_invalid:
            text += f"  {self._paint('red', 'invalid')}"
        origin = self._origin_of(module.path)
        return f"{text}  ({origin})" if origin else text


def shown_version(previous: str, version: str) -> str:
    """Return the version of an installed module, or its old and new version after an upgrade."""
    return f"{with_v(previous)} -> {with_v(version)}" if previous else with_v(version)
