"""
The files of faces: `lib/puppet/face/<name>.py` in the environment's modules, and below libdir.

Nothing here runs such a file: what `puppet help` and completion say of it is read off its source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.docstrings import parse_docstring
from shared.errors import BadData, ConfigError, Denied, Location, PuppetError
from shared.filesystem.files import read_regular
from shared.filesystem.trust import check_place_of_code
from shared.settings import AgentSettings, load

from ..environment import plugin_folders

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
MAX_SOURCE = 1 << 20  # bytes of a face's file


@dataclass(frozen=True, slots=True)
class FaceOutline:
    """The description of a face from its source; `actions` with a summary each, `options` those of all actions together."""

    name: str
    summary: str
    actions: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FaceFile:
    """One file of a face; `folder` is the module's `lib` or libdir."""

    name: str
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "puppet" / "face" / f"{self.name}.py"

    def check(self) -> None:
        """Raise ConfigError when somebody else could have written the file. Blocks."""
        try:
            check_place_of_code(self.path)
        except (Denied, OSError) as err:
            problem, hint = (err.message, err.hint) if isinstance(err, Denied) else (err.strerror, "")
            raise ConfigError(f"The face {self.name} is not used: {problem} (file: {self.path})", hint=hint) from err

    def outline(self) -> FaceOutline:
        """
        Return the outline from its source; raise ConfigError when it cannot be read, is not Python or declares no face of its name.
        Blocks.
        """
        self.check()
        try:
            tree = ast.parse(read_regular(self.path, MAX_SOURCE))
        except BadData as err:
            raise ConfigError(f"Could not read the face {self.name}: {err.message} (file: {self.path})") from err
        except OSError as err:
            raise ConfigError(f"Could not read the face {self.name}: {err.strerror} (file: {self.path})") from err
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            where = Location(str(self.path), getattr(err, "lineno", None))
            problem = f"{type(err).__name__}: {getattr(err, 'msg', err)}"
            raise ConfigError(f"Could not load the face {self.name}: {problem}", where=where) from err
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and _keyword(node, "name") == self.name:
                return _outline(self.name, node)
        raise ConfigError(f"{self.path} defines no face {self.name}", hint=f'It would be a class X(Face, name="{self.name}").')


def face_folders(flags: Mapping[str, Any], modulepath: str = "") -> list[Path]:
    """Return the folders that may have faces, as `plugin_folders` does."""
    return plugin_folders(load(AgentSettings, section="user", flags=flags), flags, modulepath)


def faces_in(folders: Sequence[Path]) -> dict[str, FaceFile]:
    """Return the files of faces below these folders by name; of two with one name the first counts. Blocks; ConfigError."""
    faces: dict[str, FaceFile] = {}
    for folder in folders:
        try:
            paths = sorted((folder / "puppet" / "face").glob("*.py"))
        except OSError as err:
            raise ConfigError(f"Could not look for faces in {folder}: {err.strerror}") from err
        for path in paths:
            if _NAME.fullmatch(path.stem):
                faces.setdefault(path.stem, FaceFile(path.stem, folder))
    return faces


def outlines(faces: Mapping[str, FaceFile], built_in: Collection[str]) -> tuple[list[FaceOutline], list[PuppetError]]:
    """Return the descriptions of the faces, and the reasons why some are not used. A built-in command cannot be replaced."""
    found: list[FaceOutline] = []
    problems: list[PuppetError] = []
    for name, face in sorted(faces.items()):
        try:
            if name in built_in:
                raise ConfigError(f"The face {name} is not used: puppet {name} is built in (file: {face.path})")
            found.append(face.outline())
        except ConfigError as err:
            problems.append(err)
    return found, problems


# --- reading a source


def _keyword(node: ast.ClassDef, name: str) -> Any:
    value = next((each.value for each in node.keywords if each.arg == name), None)
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None


def _outline(name: str, node: ast.ClassDef) -> FaceOutline:
    actions: dict[str, str] = {}
    options: set[str] = set()
    if any(_name_of(base) == "IndirectionFace" for base in node.bases):
        from shared.faces import IndirectionFace  # with all that moves over the wire
        from shared.faces.core import FaceAction

        actions |= {name: each.doc.summary for name, each in vars(IndirectionFace).items() if isinstance(each, FaceAction)}
        options |= {"extra", "terminus"}
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and any(_name_of(one) == "action" for one in each.decorator_list):
            actions[each.name.rstrip("_")] = parse_docstring(ast.get_docstring(each)).summary
            options |= {_option(one.arg, default) for one, default in zip(each.args.kwonlyargs, each.args.kw_defaults, strict=True)}
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and _name_of(each.value) == "option":
            options.add(_option(each.target.id, None))
    for action in _keyword(node, "without") or ():
        actions.pop(action, None)
    return FaceOutline(name, parse_docstring(ast.get_docstring(node)).summary, actions, sorted(options))


def _name_of(node: ast.expr | None) -> str:
    """Return the name in `name`, `module.name` or a call of them, else ''."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _option(name: str, default: ast.expr | None) -> str:
    word = name.rstrip("_").replace("_", "-")
    return f"no-{word}" if isinstance(default, ast.Constant) and default.value is True else word
