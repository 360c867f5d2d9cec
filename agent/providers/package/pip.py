"""Python's packages by `pip`. Source: resource layer reference 7.3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cmp_to_key

from shared.ral import State
from shared.types.package import Package

from .targeted import Targeted, one_of
from .versions import compare_pep440

_FREEZE = re.compile(r"([^=\s]+)===?([^=\s]+)")
_PIP = ("pip", "pip-python", "pip2", "pip-2")
_PIP2, _PIP3 = ("pip2", "pip-2"), ("pip3", "pip-3")
_NO_VERSION = "9!0dev0+x"  # valid, and nobody has it; pip lists the versions that there are
_LEGACY_RESOLVER = ("20.2.4", "21.1")  # between the two, only the old resolver lists the versions


def normal_name(name: str) -> str:
    """Return a project's name in normal form, by which all its spellings are compared. Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_freeze(text: str) -> dict[str, str]:
    """Return versions by normal name, from the output of `pip freeze`; packages that were not installed from an index have none."""
    matches = (_FREEZE.fullmatch(line.strip()) for line in text.splitlines())
    return {normal_name(match[1]): match[2] for match in matches if match}


def parse_version(text: str) -> str:
    """Return pip's own version."""
    match = re.match(r"pip (\d+(?:\.\d+)*)", text.strip())
    return match[1] if match else "0"


def parse_versions(text: str) -> list[str]:
    """Return the versions that pip's error message lists for a version that does not exist; oldest first."""
    match = re.search(r"\(from versions: ([^)]*)\)", text)
    versions = [part.strip() for part in match[1].split(",")] if match else []
    valid = []
    for version in versions:
        try:
            compare_pep440(version, version)
        except ValueError:
            continue
        valid.append(version)
    return sorted(valid, key=cmp_to_key(compare_pep440))


class Projects(Targeted, name="projects", features=("version_ranges",)):
    """Manages projects of the Python that its pip belongs to."""

    order = staticmethod(compare_pep440)

    async def instances(self) -> Mapping[str, State]:
        return await self._freeze(None)

    async def _freeze(self, resource: Package | None) -> dict[str, State]:
        output = await self.query_manager(resource, "freeze", "--all")
        return {name: {"ensure": version} for name, version in parse_freeze(output.text).items()}

    async def query(self, resource: Package) -> State | None:
        return (await self._freeze(resource)).get(normal_name(resource.name))

    async def available(self, resource: Package) -> Sequence[str]:
        version = parse_version((await self.query_manager(resource, "--version")).text)
        words = ["install", *self.install_options(resource)]
        if compare_pep440(version, _LEGACY_RESOLVER[0]) > 0 and compare_pep440(version, _LEGACY_RESOLVER[1]) < 0:
            words.append("--use-deprecated=legacy-resolver")
        output = await self.query_manager(resource, *words, "--", f"{resource.name}=={_NO_VERSION}", fail=False)
        versions = parse_versions(output.text)
        # As pip itself does: pre-releases count only where there is nothing else.
        return [version for version in versions if not re.search(r"[a-z]", version.partition("+")[0].replace("post", ""))] or versions

    async def latest(self, resource: Package, state: State) -> str | None:
        versions = await self.available(resource)
        return versions[-1] if versions else state.get("ensure")

    async def install(self, resource: Package, state: State | None) -> None:
        version = self.version_in_ensure(resource)
        words = ["install", "-q", *self.install_options(resource)]
        if resource.source:
            at = f"@{version}" if version else ""
            requirement = f"{resource.source}{at}#egg={resource.name}"
        elif resource.value_of("ensure") == "latest":
            words.append("--upgrade")
            requirement = resource.name
        else:
            requirement = f"{resource.name}=={await self.chosen_version(resource, version)}" if version else resource.name
        await self.run(resource, *words, "--", requirement)

    async def uninstall(self, resource: Package, state: State | None) -> None:
        await self.run(resource, "uninstall", "-y", "-q", "--", resource.name)


class Pip(Projects, name="pip", confine=[one_of(*_PIP)]):
    """Manages projects of the Python that `pip` belongs to."""

    programs = _PIP


class Pip3(Projects, name="pip3", confine=[one_of(*_PIP3)]):
    """Manages projects of Python 3."""

    programs = _PIP3


class Pip2(Projects, name="pip2", confine=[one_of(*_PIP2)]):
    """Manages projects of Python 2."""

    programs = _PIP2
