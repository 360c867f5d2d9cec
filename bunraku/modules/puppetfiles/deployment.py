"""Putting the modules that a Puppetfile names into the folder of an environment. As with r10k, no dependency is added to them."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from language.values.versions import SemVerRange
from shared.errors import PuppetError, first_error
from shared.filesystem.files import make_directory, owner_in
from shared.settings import AgentSettings

from ..forge import Forge, ForgeRelease, forge_of
from ..modulepath.installation import Say, download
from ..modulepath.placement import ModulePlacement, placement
from ..releases.archives import ModuleArchiveLimits
from ..releases.metadata import ANY_STABLE
from .puppetfile import DeclaredModule, Puppetfile
from .repositories import GitLimits, check_out

PARALLEL: Final = 4  # modules that are fetched at the same time


@dataclass(frozen=True, slots=True)
class DeployedModule:
    """
    A module that was put into its place.

    Attributes:
        version: of the Forge: its version; of Git: the sum of the commit; '' for a local one.
    """

    module: DeclaredModule
    path: Path
    version: str = ""


async def install_puppetfile(
    puppetfile: Puppetfile,
    environment: Path,
    settings: AgentSettings,
    *,
    say: Say = lambda level, text: None,
) -> list[DeployedModule]:
    """
    Install all modules of a Puppetfile in their folders below that of an environment, replacing existing ones.

    They are fetched and unpacked in temporary folders first; if one fails, nothing is changed. What is in those folders and not in the
    Puppetfile stays.

    Args:
        say: is told warnings about releases, with their level.
    Raises:
        PuppetError: a module cannot be fetched or is not right; the message names it.
    """
    forge = forge_of(settings, lambda text: say("warning", text), url=puppetfile.forge)
    git_limits = GitLimits(settings.module_git_timeout, settings.module_files, settings.module_unpacked_size)
    homes = {module: (environment / puppetfile.path_of(module)).parent for module in puppetfile.modules}
    turns = asyncio.Semaphore(PARALLEL)
    with placement(ModuleArchiveLimits.of(settings)) as modules:
        for home in dict.fromkeys(home for module, home in homes.items() if module.kind != "local"):
            await asyncio.to_thread(make_directory, home, inherit=True)
            await asyncio.to_thread(modules.room, home)

        async def deploy(module: DeclaredModule) -> DeployedModule:
            home = homes[module]
            if module.kind == "local":
                return DeployedModule(module, home / module.folder)
            async with turns:
                if module.kind == "forge":
                    release = await release_of(module, forge)
                    path = await download(forge, release, home, modules, say, lambda name, size: None)
                    return DeployedModule(module, path, str(release.version))
                return await _from_git(module, home, modules, git_limits)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(deploy(module)) for module in puppetfile.modules]
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        await asyncio.to_thread(modules.commit)
    return [task.result() for task in tasks]


async def release_of(module: DeclaredModule, forge: Forge) -> ForgeRelease:
    """Return the newest release of a module that a Puppetfile allows; PuppetError when the Forge has none."""
    versions = SemVerRange.parse(module.version or ANY_STABLE)
    releases = [release for release in await forge.releases(module.full_name) if release.version in versions]
    if not releases:
        raise PuppetError(
            f"{forge.shown_url} has no release {module.version or ANY_STABLE} of {module.full_name}",
            hint=f"The Puppetfile asks for it in line {module.line}.",
        )
    return max(releases, key=lambda release: release.version.order)


async def _from_git(module: DeclaredModule, home: Path, modules: ModulePlacement, limits: GitLimits) -> DeployedModule:
    folder = await asyncio.to_thread(modules.room, home) / secrets.token_hex(8)
    owner = await asyncio.to_thread(owner_in, home)
    commit = await check_out(module, folder, limits, owner=owner)
    path = await asyncio.to_thread(modules.place, folder, f"git-{module.folder}", home)
    return DeployedModule(module, path, commit)
