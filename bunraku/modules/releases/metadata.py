"""The metadata.json of a module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from language.values.versions import NOTHING, BadVersion, SemVer, SemVerRange
from shared.data import plainjson
from shared.errors import BadData, NotFound, PuppetError, TooLarge
from shared.filesystem.files import open_beneath
from shared.names import quoted_for_log

ANY_STABLE: Final = ">= 0.0.0"  # what a dependency without a range asks for
MAX_METADATA: Final = 4 << 20  # bytes of a metadata.json or checksums.json
MAX_DEPENDENCIES: Final = 1000
FOLDER_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
FULL_NAME: Final = re.compile(r"[A-Za-z0-9]+-[a-z][a-z0-9_]*", re.ASCII)
_ANY_CASE_NAME = re.compile(r"[A-Za-z0-9]+[-/][A-Za-z][A-Za-z0-9_]*\n?", re.ASCII)


class MissingMetadata(PuppetError):
    """A metadata.json without a field that it must have."""


def dashed(name: str) -> str:
    """Return `author-name` for a name that may be written with a slash."""
    return name.replace("/", "-")


def folder_of(name: str) -> str:
    """Return the name of the folder of the module `author-name`."""
    return name.partition("-")[2]


@dataclass(frozen=True, slots=True)
class ModuleDependency:
    """
    A module that another one needs.

    Attributes:
        name: `author-name`.
        text: the range as it is written.
        versions: the same, parsed; no version at all when it cannot be.
    """

    name: str
    text: str
    versions: SemVerRange


def read_json(folder: Path, name: str) -> Any:
    """Return the data of a JSON file of a module, NotFound when there is none; BadData, TooLarge."""
    with open_beneath(folder, name) as file:
        data = file.read(MAX_METADATA + 1)
    if len(data) > MAX_METADATA:
        raise TooLarge(f"{folder / name} is larger than {MAX_METADATA} bytes")
    return plainjson.loads(data)


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of the module in a folder, {} when it has none; BadData, TooLarge."""
    try:
        data = read_json(folder, "metadata.json")
    except NotFound:
        return {}
    if not isinstance(data, dict):
        raise BadData(f"{folder / 'metadata.json'} is no JSON object")
    return data


def installed_dependencies(metadata: Mapping[str, Any], module: str) -> tuple[ModuleDependency, ...]:
    """Return the dependencies in the metadata of an installed module; a range that cannot be read allows no version."""
    entries = metadata.get("dependencies")
    if not isinstance(entries, list):
        shown = quoted_for_log(str(entries))
        raise MissingMetadata(
            f"The value for the key dependencies in the file metadata.json of the module {module} must be an array, not: {shown}"
        )
    dependencies = []
    for entry in entries[:MAX_DEPENDENCIES]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise BadData(f"A dependency in the metadata.json of the module {module} has no name", hint="Write its author-name there.")
        text = entry.get("version_requirement") or ANY_STABLE
        try:
            versions = SemVerRange.parse(str(text))
        except BadVersion:
            versions = SemVerRange((NOTHING,), str(text))
        dependencies.append(ModuleDependency(dashed(entry["name"]), str(text), versions))
    return tuple(dependencies)


def released_dependencies(metadata: Mapping[str, Any]) -> tuple[ModuleDependency, ...]:
    """Return the dependencies in the metadata of a release on a Forge; BadData when one cannot be understood."""
    entries = metadata.get("dependencies") or []
    if not isinstance(entries, list) or len(entries) > MAX_DEPENDENCIES or not all(isinstance(entry, dict) for entry in entries):
        raise BadData("Its dependencies are no list of at most 1000 objects")
    dependencies: dict[str, ModuleDependency] = {}
    for entry in entries:
        name, text = entry.get("name"), entry.get("version_requirement")
        try:
            valid_name(str(name))
            versions = SemVerRange.parse(ANY_STABLE if text is None else str(text))
        except BadVersion as err:
            wrong = f"Invalid 'version_range' field in metadata.json: {err}"
            raise BadData(f"Malformed dependency: {name}. Exception was: {wrong}") from err
        except BadData as err:
            raise BadData(f"Malformed dependency: {name}. Exception was: {err}") from err
        dependencies[dashed(name)] = ModuleDependency(dashed(name), ANY_STABLE if text is None else str(text), versions)
    return tuple(dependencies.values())


def valid_name(name: str) -> str:
    """Return a module's full name, with `-` or `/` in it; raise BadData with Puppet's message for an invalid one."""
    if _ANY_CASE_NAME.fullmatch(name):
        return name
    namespace, _, short = re.sub("[-/]", "-", name, count=1).partition("-")
    if not namespace or not short:
        wrong = "the field must be a namespaced module name"
    elif not re.fullmatch(r"\w+", short, re.ASCII):
        wrong = "the module name contains non-alphanumeric (or underscore) characters"
    elif not short[0].isalpha():
        wrong = "the module name must begin with a letter"
    else:
        wrong = "the namespace contains non-alphanumeric characters"
    raise BadData(f"Invalid 'name' field in metadata.json: {wrong}")


def name_and_version(metadata: Mapping[str, Any]) -> tuple[str, SemVer]:
    """Return the name (`author-name`) and the version of a module to install; raise BadData or BadVersion for invalid ones."""
    name, version = metadata.get("name"), metadata.get("version")
    if not isinstance(name, str) or not FULL_NAME.fullmatch(dashed(name)):
        shown = quoted_for_log(str(name))
        raise BadData(f"{shown} cannot be the name of a module", hint="A full name is an author, a dash, and small letters, digits or _.")
    if not isinstance(version, str):
        raise BadData(f"The metadata of {name} has no version")
    return dashed(name), SemVer.parse(version)
