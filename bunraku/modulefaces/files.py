"""
The files of faces: `lib/puppet/face/<name>.py` in the environment's modules, and below libdir.

Nothing here runs such a file: what `puppet help` and completion say of it is read off its source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.directories import Environments, EnvironmentSettings
from shared.docstrings import parse_docstring
from shared.errors import ConfigError, Denied, Location, NotFound, PuppetError
from shared.filesystem.trust import check_place_of_code
from shared.settings import AgentSettings, MasterSettings, load

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MODULE = re.compile(r"[a-z]\w*", re.ASCII)
MAX_SOURCE = 1 << 20  # bytes of a face's file


@dataclass(frozen=True, slots=True)
class FaceOutline:
    """What the source of a face says of itself; `actions` with a summary each, `options` those of all actions together."""

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
        """Return what its source says; ConfigError when it cannot be read, is not Python or declares no face of its name. Blocks."""
        self.check()
        try:
            with self.path.open("rb") as stream:
                source = stream.read(MAX_SOURCE + 1)
            if len(source) > MAX_SOURCE:
                raise ConfigError(f"The face {self.name} is larger than {MAX_SOURCE} bytes (file: {self.path})")
            tree = ast.parse(source)
        except OSError as err:
            raise ConfigError(f"Could not read the face {self.name}: {err.strerror} (file: {self.path})") from err
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            where = Location(str(self.path), getattr(err, "lineno", None))
            problem = f"{type(err).__name__}: {getattr(err, 'msg', err)}"
            raise ConfigError(f"Could not load the face {self.name}: {problem}", where=where) from err
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in classes.values():
            if _keyword(node, "name") == self.name:
                return _outline(self.name, node, classes)
        raise ConfigError(f"{self.path} defines no face {self.name}", hint=f'It would be a class X(Face, name="{self.name}").')


def face_folders(flags: Mapping[str, Any], modulepath: str = "") -> list[Path]:
    """
    Return the folders `lib` of the environment's modules, and libdir.

    Args:
        flags: the settings of the command line.
        modulepath: folders of modules in place of the environment's, separated by colons.
    Raises:
        NotFound, ConfigError: the environment does not exist, or is configured wrongly.
    """
    settings = load(MasterSettings, section="user", flags=flags)
    if modulepath:
        bases = [Path(folder).absolute() for folder in modulepath.split(":") if folder]
    else:
        try:
            bases = [Path(folder) for folder in Environments(EnvironmentSettings.of(settings)).read(settings.environment).modulepath]
        except NotFound:
            if settings.environment != "production":  # nobody needs to make that one
                raise
            bases = list(settings.basemodulepath)
    modules: dict[str, Path] = {}
    for base in bases:
        try:
            for module in sorted(path for path in base.iterdir() if _MODULE.fullmatch(path.name)):
                modules.setdefault(module.name, module)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as err:
            raise ConfigError(f"Could not look for faces in {base}: {err.strerror}") from err
    return [*(module / "lib" for module in modules.values()), load(AgentSettings, section="user", flags=flags).plugindest]


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
    """Return what the faces say of themselves, and why some are not used. A command that is built in cannot be replaced."""
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


def _outline(name: str, node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> FaceOutline:
    actions: dict[str, str] = {}
    options: dict[str, None] = {}
    for base in _bases(node, classes):
        if base is None:
            from shared.faces import IndirectionFace  # with all that moves over the wire

            actions |= {name: each.doc.summary for name, each in vars(IndirectionFace).items() if hasattr(each, "parameters")}
            options |= dict.fromkeys(("extra", "terminus"))
            continue
        for each in base.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_is_action, each.decorator_list)):
                actions[each.name.rstrip("_")] = parse_docstring(ast.get_docstring(each)).summary
                flags = dict(zip([one.arg for one in each.args.kwonlyargs], each.args.kw_defaults, strict=True))
                options |= {_option(one, default): None for one, default in flags.items()}
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and _is_call_of(each.value, "option"):
                options[_option(each.target.id, None)] = None
    for action in _keyword(node, "without") or ():
        actions.pop(action, None)
    return FaceOutline(name, parse_docstring(ast.get_docstring(node)).summary, actions, tuple(sorted(options)))


def _bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef | None]:
    """Yield the classes of the file that a face is made of, the farthest first; None stands for `IndirectionFace`."""
    for base in node.bases:
        called = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        if called == "IndirectionFace":
            yield None
        elif called in classes and classes[called] is not node and classes[called].lineno < node.lineno:
            yield from _bases(classes[called], classes)
    yield node


def _is_action(decorator: ast.expr) -> bool:
    return _is_call_of(decorator, "action") or (isinstance(decorator, ast.Name) and decorator.id == "action")


def _is_call_of(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _option(name: str, default: ast.expr | None) -> str:
    word = name.rstrip("_").replace("_", "-")
    return f"no-{word}" if isinstance(default, ast.Constant) and default.value is True else word
