"""
A Puppetfile: which modules an environment consists of.

It is Ruby for r10k; here it is read, never run, so only what declares is understood: `forge`, `moduledir` and `mod` with literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from environments.module_types.ruby_source import RubyExpressions, RubyFile, Unreadable
from language.values.versions import BadVersion, SemVer, SemVerRange
from shared.errors import BadName, ConfigError, Location, NotFound, PuppetError, TooLarge
from shared.filesystem.files import open_beneath, parts_of
from shared.git import ALL_PROTOCOLS, check_location, check_ref
from shared.names import quoted_for_log

from ..releases.metadata import FOLDER_NAME, FULL_NAME, dashed

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_PUPPETFILE: Final = 1 << 20  # bytes
MAX_MODULES: Final = 2000
_R10K: Final = "This Puppetfile is read, not run: write forge, moduledir and mod with plain values, or deploy it with r10k."
_REFS: Final = ("commit", "tag", "branch", "ref")
_KNOWN: Final = frozenset(("git", *_REFS, "local", "install_path", "type", "version"))


@dataclass(frozen=True, slots=True)
class DeclaredModule:
    """
    A module that a Puppetfile declares.

    Attributes:
        title: as it is written.
        kind: forge, git or local (it is part of the control repository, and left alone).
        version: of the Forge: a version, a range, or '' for the newest.
        git: the URL of its repository; '' if it is not there.
        ref: a commit, tag or branch of that; '' for the branch that the repository itself prefers.
        ref_kind: commit, tag, branch or ref.
        install_path: a folder below the environment's, in place of moduledir.
    """

    title: str
    kind: str
    line: int
    version: str = ""
    git: str = ""
    ref: str = ""
    ref_kind: str = ""
    install_path: str = ""

    @property
    def folder(self) -> str:
        """Return the name of the module's folder."""
        return dashed(self.title).rpartition("-")[2]

    @property
    def full_name(self) -> str:
        return dashed(self.title)

    def to_data(self) -> dict[str, Any]:
        """Return where it comes from, for scripts."""
        if self.kind == "forge":
            return {"kind": "forge", "name": self.full_name, "version": self.version or None}
        if self.kind == "git":
            return {"kind": "git", "git": self.git, "ref": self.ref or None}
        return {"kind": "local"}

    def __str__(self) -> str:
        if self.kind == "forge":
            return f"Forge, {self.version or 'latest'}"
        return f"{self.git} {self.ref}".rstrip() if self.kind == "git" else "local"


@dataclass(frozen=True, slots=True)
class Puppetfile:
    """
    The declarations of a Puppetfile.

    Attributes:
        forge: the URL of a Forge; '' for that of the settings.
        moduledir: the folder of the modules, below that of the environment.
    """

    modules: tuple[DeclaredModule, ...]
    forge: str = ""
    moduledir: str = "modules"

    def path_of(self, module: DeclaredModule) -> str:
        """Return the path of a module's folder, from that of the environment."""
        return f"{module.install_path or self.moduledir}/{module.folder}"


def read_puppetfile(environment: Path) -> Puppetfile | None:
    """Return the Puppetfile in the folder of an environment, None when there is none; errors as `parse_puppetfile`. Blocks."""
    try:
        with open_beneath(environment, "Puppetfile") as file:
            data = file.read(MAX_PUPPETFILE + 1)
    except NotFound:
        return None
    return parse_puppetfile(data, str(environment / "Puppetfile"))


def parse_puppetfile(data: bytes, path: str) -> Puppetfile:
    """
    Return the declarations of a Puppetfile.

    Raises:
        ConfigError: it contains other code, or an invalid declaration; with the line. TooLarge.
    """
    if len(data) > MAX_PUPPETFILE:
        raise TooLarge(f"{path} is larger than {MAX_PUPPETFILE} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as err:
        raise ConfigError(f"{path} is not UTF-8: {err}") from err
    return _Reader(RubyFile.parse(path, data)).puppetfile()


class _Symbol(str):
    """A symbol of Ruby."""


class _Reader:
    """Reads one file."""

    def __init__(self, file: RubyFile) -> None:
        self._file = file
        self._modules: dict[str, DeclaredModule] = {}
        self._forge = ""
        self._moduledir = "modules"

    def puppetfile(self) -> Puppetfile:
        for node in self._file.walk() if self._file.root.has_error else ():
            if node.is_error or node.is_missing:
                raise self._error(node, "is not valid Ruby")
        for statement in self._file.root.named_children:
            if statement.type != "comment":
                self._statement(statement)
        return Puppetfile(tuple(self._modules.values()), self._forge, self._moduledir)

    def _error(self, node: Node, problem: str, hint: str = _R10K) -> ConfigError:
        row, column = node.start_point
        text = self._file.text(node).partition("\n")[0]
        shown = f"{quoted_for_log(text)} " if text else "Its end "
        return ConfigError(f"{shown}{problem}", where=Location(self._file.path, row + 1, column + 1), hint=hint)

    def _statement(self, node: Node) -> None:
        method = node.child_by_field_name("method") if node.type == "call" else None
        name = self._file.text(method) if method is not None else ""
        plain = node.child_by_field_name("receiver") is None and node.child_by_field_name("block") is None
        arguments = node.child_by_field_name("arguments")
        if name not in ("forge", "moduledir", "mod") or not plain or arguments is None:
            raise self._error(node, "declares no module")
        values: list[Any] = []
        options: dict[str, Any] = {}
        for argument in arguments.named_children:
            if argument.type == "comment":
                continue
            if argument.type in ("pair", "hash"):
                for pair in [argument] if argument.type == "pair" else argument.named_children:
                    self._option(pair, options)
            else:
                values.append(self._literal(argument))
        if name == "mod":
            self._module(node, values, options)
        elif len(values) != 1 or options or not isinstance(values[0], str):
            raise self._error(node, "takes one text")
        elif name == "forge":
            if not re.match(r"https?://", values[0]):
                raise self._error(node, "is no URL of a Forge", "Write https://…")
            self._forge = values[0]
        else:
            self._moduledir = self._below(node, values[0])

    def _option(self, pair: Node, options: dict[str, Any]) -> None:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if pair.type == "comment":
            return
        if pair.type != "pair" or key is None or value is None:
            raise self._error(pair, "is no plain option")
        name = self._file.text(key) if key.type == "hash_key_symbol" else self._literal(key)
        if not isinstance(name, str) or name not in _KNOWN:
            raise self._error(pair, "is an option that is not supported here", f"There are {', '.join(sorted(_KNOWN))}. Or use r10k.")
        if name in options:
            raise self._error(pair, "is there twice")
        options[name] = self._literal(value)

    def _literal(self, node: Node) -> Any:
        """Return the value of a string, a symbol, true, false or nil."""
        if node.type not in ("true", "false", "nil", "simple_symbol", "string", "delimited_symbol"):
            raise self._error(node, "is not a plain value")
        try:
            value = RubyExpressions({}, {}).value(self._file, node, {})
        except Unreadable as err:
            raise self._error(node, "is not a plain text") from err
        return _Symbol(value) if node.type.endswith("symbol") else value

    def _below(self, node: Node, path: str) -> str:
        """Return a path that leads to a folder below the environment's."""
        try:
            parts = parts_of(path)
        except BadName:
            parts = ()
        if not parts or not path.isprintable() or any(part.startswith(".") for part in parts):
            raise self._error(node, "names a folder that is not below that of the environment")
        return "/".join(parts)

    def _module(self, node: Node, values: Sequence[Any], options: Mapping[str, Any]) -> None:
        title = values[0] if values else None
        if not isinstance(title, str) or len(values) > 2:
            raise self._error(node, "has no name, or more than a name and a version")
        if not FOLDER_NAME.fullmatch(title) and not FULL_NAME.fullmatch(dashed(title)):
            raise self._error(node, f"names no module: {quoted_for_log(title)}", "A name is author/module or module, in small letters.")
        kind = options.get("type") or ("git" if "git" in options else "local" if options.get("local") is True else "forge")
        line = node.start_point[0] + 1
        install_path = self._below(node, str(options["install_path"])) if "install_path" in options else ""
        version = values[1] if len(values) > 1 else options.get("version")
        references = [name for name in _REFS if name in options]
        allowed = {"forge": {"version"}, "git": {"git", *_REFS}, "local": {"local"}}.get(str(kind))
        if allowed is None or set(options) - allowed - {"type", "install_path"} - ({"local"} if options.get("local") is False else set()):
            raise self._error(node, "has options that do not go together")
        if kind == "forge":
            if "-" not in dashed(title):
                raise self._error(node, "names a module of the Forge without its author", "Write author/module.")
            text = self._version(node, version)
            module = DeclaredModule(title, "forge", line, version=text, install_path=install_path)
        elif kind == "git":
            url, reference = options.get("git"), options[references[0]] if references else ""
            if version is not None or len(references) > 1:
                raise self._error(node, "has more than one version", "Write one of :ref, :tag, :branch and :commit.")
            if not isinstance(url, str) or not _passes(lambda text: check_location(text, ALL_PROTOCOLS), url):
                raise self._error(node, "has an invalid repository", "Write https://…, ssh://…, user@host:path, file:///… or a path.")
            if isinstance(reference, _Symbol) or not isinstance(reference, str) or (reference and not _passes(check_ref, reference)):
                raise self._error(node, "has an invalid reference", "Write the name of a branch or tag, or the sum of a commit.")
            ref_kind = references[0] if references else ""
            module = DeclaredModule(title, "git", line, git=url, ref=reference, ref_kind=ref_kind, install_path=install_path)
        else:
            module = DeclaredModule(title, "local", line, install_path=install_path)
        if module.folder in self._modules:
            raise self._error(node, f"is in one folder with the module of line {self._modules[module.folder].line}")
        if len(self._modules) >= MAX_MODULES:
            raise self._error(node, f"is the module after the first {MAX_MODULES}")
        self._modules[module.folder] = module

    def _version(self, node: Node, version: Any) -> str:
        if version is None or (isinstance(version, _Symbol) and version == "latest") or version == "latest":
            return ""
        if not isinstance(version, str) or isinstance(version, _Symbol):
            raise self._error(node, "has an invalid version")
        try:
            SemVer.parse(version)
        except BadVersion:
            try:
                SemVerRange.parse(version)
            except BadVersion as err:
                raise self._error(node, f"has an invalid version: {err}", "Write 1.2.3, a range, or :latest.") from err
        return version


def _passes(check: Callable[[str], object], text: str) -> bool:
    """Return whether a check lets a text pass."""
    try:
        check(text)
    except PuppetError:
        return False
    return True
