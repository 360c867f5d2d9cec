"""Installing and upgrading modules with their dependencies, as `puppet module install` and `upgrade` do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from language.values.versions import SemVer, SemVerRange
from shared.errors import NotFound, PuppetError
from shared.filesystem.files import make_directory

from .. import errors
from ..errors import Wanted
from ..forge import Forge, ForgeRelease
from ..releases.checksums import has_changes
from ..releases.metadata import ANY_STABLE, dashed, folder_of, installed_dependencies, read_metadata
from .installed import InstalledModule, InstalledModules
from .placement import ModulePlacement
from .resolution import Candidate, Constraint, ResolutionProblem, Unsatisfiable, resolve

_INSTALLED = 10  # the priority of what is there
Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class InstalledNode:
    """
    A module in the result of an installation, with its new dependencies.

    Attributes:
        folder: the folder of the modulepath that it is in.
        previous: the earlier version; '' when it is new or unchanged.
    """

    name: str
    version: str
    folder: Path
    previous: str = ""
    dependencies: tuple[InstalledNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    """
    The result of an installation.

    Attributes:
        folder: where.
        unchanged: the version that was installed already, so that nothing was done; otherwise ''.
    """

    folder: Path
    tree: InstalledNode | None = None
    unchanged: str = ""


@dataclass(slots=True)
class ModuleInstaller:
    """
    One `puppet module install` or `upgrade`.

    Args:
        installed: the installed modules.
        say: is called with each step, and the level of the message.
        progress: is called with the name of the download and the number of received bytes.
    """

    forge: Forge
    installed: InstalledModules
    placement: ModulePlacement
    say: Say
    progress: Callable[[str, int], None] = lambda name, size: None
    force: bool = False
    ignore_dependencies: bool = False
    ignore_changes: bool = False
    _known: dict[str, Sequence[Candidate]] = field(default_factory=dict)

    async def install(self, name: str, folder: Path, version: str = "") -> Installation:
        """
        Install a module, by its name or from an archive.

        Args:
            name: `author-name`, or the path of an archive.
            version: a version or a range; '' for the newest.
        Raises:
            ModuleToolError: Puppet's own refusals. PuppetError: others.
        """
        archive = Path(name) if await asyncio.to_thread(Path(name).exists) else None
        if archive is None and name.startswith((".", "/", "~")):
            raise NotFound(f"The file {name} does not exist")
        local = await asyncio.to_thread(self._local, archive, folder) if archive is not None else None
        name = local.name if local is not None else dashed(name)
        version = str(local.version) if local is not None else version
        if "-" not in name:
            raise errors.invalid_name(name, f"puppetlabs-{name}")
        wanted = Wanted("install", name, version)
        there = self.installed.by_name.get(name)
        if there is not None and not self.force:
            if self._version(there) in SemVerRange.parse(version or ANY_STABLE):
                return Installation(folder, unchanged=str(self._version(there)))
            had_changes = await asyncio.to_thread(has_changes, there.path)
            raise errors.already_installed(Wanted("install", name, version, str(self._version(there))), had_changes)
        await asyncio.to_thread(self._make_folder, folder, wanted)
        alone = self.force or self.ignore_dependencies
        if local is None or not alone:
            self.say("notice", f"Downloading from {self.forge.shown_url} ...")
        versions = SemVerRange.parse(version or ANY_STABLE)

        async def fetch(module: str) -> list[Candidate]:
            here = [local] if local is not None and module == local.name else []
            if local is not None and alone:
                return here
            there = [] if self.force else self._candidates_here(module)
            return _first_of_each_version([*here, *there, *await self._candidates_of_forge(module)])

        candidates = self._known[name] = _alone(await fetch(name)) if alone else await fetch(name)
        fitting = [candidate for candidate in candidates if candidate.version in versions]
        if not fitting:
            raise errors.no_releases(wanted, self.forge.shown_url)
        self.say("info", "Resolving dependencies ...")
        problem = ResolutionProblem(name, versions, fetch, self._constraints(name), one_a_folder=not self.force)
        try:
            chosen = await resolve(problem, self._known)
        except Unsatisfiable as err:
            raise self._no_solution(err.name, wanted, fitting, problem) from err
        if not self.force:
            self._check_places(wanted, chosen)
        self.say("info", "Preparing to install ...")
        homes = {module: found.directory for module, found in self.installed.by_name.items()} if not self.force else {}
        places = await self._prepare(chosen, homes, folder)
        self.say("notice", "Installing -- do not interrupt ...")
        await asyncio.to_thread(self.placement.commit)
        return Installation(folder, self._tree(chosen[0], chosen, places, set()))

    async def upgrade(self, name: str, version: str = "") -> Installation:
        """Upgrade an installed module; arguments and errors as `install`."""
        wanted = Wanted("upgrade", name, version)
        matching = [module for module in self.installed.everywhere if module.name == name]
        if not matching:
            raise errors.not_installed(wanted)
        if len(matching) > 1:
            raise errors.installed_twice(wanted, [(module.version, module.directory) for module in matching])
        there = matching[0]
        wanted = Wanted("upgrade", name, version, there.version)
        current = SemVer.parse(there.version)
        self.say("notice", f"Found '{name}' ({errors.with_v(there.version)}) in {there.directory} ...")
        if not (self.force or self.ignore_changes) and await asyncio.to_thread(has_changes, there.path):
            raise errors.changed_locally(wanted)
        versions = SemVerRange.parse(version or ANY_STABLE)
        offered = await self._candidates_of_forge(name)
        if not any(not version or candidate.version in versions for candidate in offered):
            raise errors.no_releases(wanted, self.forge.shown_url)
        self.say("notice", f"Downloading from {self.forge.shown_url} ...")

        async def fetch(module: str) -> list[Candidate]:
            here = self._candidates_here(module, priority=0 if module == name else _INSTALLED)
            return _first_of_each_version([*here, *(offered if module == name else await self._candidates_of_forge(module))])

        alone = self.force or self.ignore_dependencies
        candidates = self._known[name] = _alone(await fetch(name)) if alone else await fetch(name)
        self.say("info", "Resolving dependencies ...")
        problem = ResolutionProblem(name, versions, fetch, self._constraints(name), one_a_folder=not self.force)
        try:
            chosen = await resolve(problem, self._known)
        except Unsatisfiable as err:
            raise errors.no_solution(wanted) from err
        self._check_places(wanted, chosen)
        best = chosen[0].version
        if not self.force and best == current:
            newer = sum(candidate.version in versions and candidate.version > current for candidate in candidates)
            raise errors.not_newer(wanted, newer, self._holders(name))
        if not self.force and best < current:
            raise errors.downgrade(wanted)
        self.say("info", "Preparing to upgrade ...")
        homes = {module: found.directory for module, found in self.installed.by_name.items()}
        places = await self._prepare(chosen, homes, there.directory)
        self.say("notice", "Upgrading -- do not interrupt ...")
        await asyncio.to_thread(self.placement.commit)
        tree = self._tree(chosen[0], chosen, places, set(), with_unchanged=False)
        return Installation(places[chosen[0].name], tree)

    # --- candidates

    def _local(self, archive: Path, folder: Path) -> Candidate:
        """Return the candidate that an archive is, unpacked. Blocks."""
        above = next(path for path in (folder, *folder.parents) if path.is_dir())
        module, name, version = self.placement.unpacked(archive, above)
        dependencies = installed_dependencies(read_metadata(module), name)
        return Candidate(name, version, dependencies, origin=module)

    def _version(self, module: InstalledModule) -> SemVer:
        """Return the version of an installed module, 0.0.0 with a warning when it is not a version."""
        if module.semantic_version is None:
            self.say(
                "warning",
                f"{module.folder} ({module.path}) has an invalid version number ({module.version}). The version has been set to 0.0.0. "
                "If you are the maintainer for this module, please update the metadata.json with a valid Semantic Version "
                "(http://semver.org).",
            )
        return module.semantic_version or SemVer(0, 0, 0)

    def _candidates_here(self, name: str, priority: int = _INSTALLED) -> list[Candidate]:
        module = self.installed.by_name.get(name)
        return [Candidate(name, self._version(module), (), priority, module)] if module is not None else []

    async def _candidates_of_forge(self, name: str) -> list[Candidate]:
        releases = await self.forge.releases(name)
        return [Candidate(release.name, release.version, release.dependencies, origin=release) for release in releases]

    def _constraints(self, name: str) -> dict[str, list[Constraint]]:
        """Return the constraints of installed modules on each other: their ranges, and their present major versions."""
        constraints: dict[str, list[Constraint]] = {}
        for module in self.installed.by_name.values() if not self.force else ():
            if module.name == name:
                continue
            version = self._version(module)
            text = f">={version} {version.major}.x"
            constraints.setdefault(module.name, []).append(Constraint(SemVerRange.parse(text), text))
            for dependency in module.dependencies:
                constraint = Constraint(dependency.versions, dependency.text, module.name)
                constraints.setdefault(dependency.name, []).append(constraint)
        return constraints

    # --- refusals

    def _no_solution(self, name: str, wanted: Wanted, fitting: Sequence[Candidate], problem: ResolutionProblem) -> PuppetError:
        """Return the error for a module whose dependencies cannot be met; `name`: the module without a matching release."""
        newest = max(fitting, key=lambda candidate: candidate.order)
        expected: dict[str, str] = {}
        if name == wanted.name:
            for constraint in problem.constraints.get(name, ()):
                if constraint.module and not (wanted.version and problem.versions.overlaps(constraint.versions)):
                    expected[constraint.module] = constraint.text
        elif name:
            expected = {dependency.name: dependency.text for dependency in newest.dependencies if dependency.name == name}
        there = self.installed.by_folder.get(folder_of(name))
        current = there.version if there is not None and there.name == name else ""
        shown = Wanted("install", wanted.name, wanted.version or str(newest.version))
        return errors.no_solution(shown, name, current, expected)

    def _holders(self, name: str) -> list[str]:
        """Return the installed modules that a module's releases depend on, directly or not."""
        holders, pending, seen = [], [name], {name}
        while pending:
            for candidate in self._known.get(pending.pop(0), ()):
                for dependency in candidate.dependencies:
                    if dependency.name not in seen:
                        seen.add(dependency.name)
                        pending.append(dependency.name)
                        if dependency.name in self.installed.by_name:
                            holders.append(dependency.name)
        return holders

    def _check_places(self, wanted: Wanted, chosen: Sequence[Candidate]) -> None:
        """Raise ModuleToolError when a module of somebody else is where a chosen one has to go."""
        in_the_way = {module.folder: module for module in self.installed.everywhere}
        for candidate in chosen:
            module = in_the_way.get(folder_of(candidate.name))
            if module is not None and module.name != candidate.name:
                dependency = (candidate.name, str(candidate.version)) if candidate.name != wanted.name else None
                current = (module.metadata["name"], module.version) if module.name else None
                raise errors.would_overwrite(wanted, module.path, dependency, current)

    def _make_folder(self, folder: Path, wanted: Wanted) -> None:
        """Make the folder to install in. Blocks."""
        if folder.is_dir():
            return
        try:
            make_directory(folder, inherit=True)
        except (FileExistsError, NotADirectoryError):
            raise errors.no_directory(wanted, folder) from None
        except PermissionError:
            raise errors.not_permitted(wanted, folder) from None
        if not folder.is_dir():
            raise errors.no_directory(wanted, folder)
        self.say("notice", f"Created target directory {folder}")

    # --- doing it

    async def _prepare(self, chosen: Sequence[Candidate], homes: dict[str, Path], folder: Path) -> dict[str, Path]:
        """Download and unpack missing releases; return the folder of the modulepath for each chosen module, by name."""
        places = {}
        for candidate in chosen:
            if isinstance(candidate.origin, InstalledModule):
                places[candidate.name] = candidate.origin.directory
                continue
            target = places[candidate.name] = homes.get(candidate.name, folder)
            if isinstance(candidate.origin, ForgeRelease):
                await download(self.forge, candidate.origin, target, self.placement, self.say, self.progress)
            else:
                await asyncio.to_thread(self.placement.place, candidate.origin, candidate.name, target)
        return places

    def _tree(
        self, candidate: Candidate, chosen: Sequence[Candidate], places: dict[str, Path], seen: set[str], *, with_unchanged: bool = True
    ) -> InstalledNode:
        """Return the result as a tree; `with_unchanged`: with the dependencies that were installed already."""
        seen.add(candidate.name)
        by_name = {other.name: other for other in chosen}
        nodes = []
        for dependency in candidate.dependencies:
            other = by_name.get(dependency.name)
            if other is None or (not with_unchanged and isinstance(other.origin, InstalledModule)) or other.name in seen:
                continue
            nodes.append(self._tree(other, chosen, places, seen, with_unchanged=with_unchanged))
        there = self.installed.by_name.get(candidate.name)
        previous = str(self._version(there)) if there is not None else ""
        if previous == str(candidate.version) or (self.force and with_unchanged):
            previous = ""
        nodes.sort(key=lambda node: node.name)
        return InstalledNode(candidate.name, str(candidate.version), places[candidate.name], previous, tuple(nodes))


async def download(
    forge: Forge,
    release: ForgeRelease,
    folder: Path,
    placement: ModulePlacement,
    say: Say,
    progress: Callable[[str, int], None] = lambda name, size: None,
) -> Path:
    """Prepare a release of a Forge for a folder; return the place where `commit` will put it."""
    if release.deprecated:
        say("warning", f"{release.name} has been deprecated by its author! View module on Puppet Forge for more info.")
    room = await asyncio.to_thread(placement.room, folder)
    archive = room / f"{release.name}-{release.version}.tar.gz"
    await forge.download(release, archive, lambda size: progress(release.name, size))
    module, name, version = await asyncio.to_thread(placement.unpacked, archive, folder)
    if (name, version) != (release.name, release.version):
        raise PuppetError(
            f"The archive of {release.name} {release.version} holds {name} {version}", hint="Report this to the operator of the Forge."
        )
    return await asyncio.to_thread(placement.place, module, name, folder)


def _first_of_each_version(candidates: Sequence[Candidate]) -> list[Candidate]:
    by_version: dict[SemVer, Candidate] = {}
    for candidate in candidates:
        by_version.setdefault(candidate.version, candidate)
    return list(by_version.values())


def _alone(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates as if they depended on nothing."""
    return [Candidate(each.name, each.version, (), each.priority, each.origin) for each in candidates]
