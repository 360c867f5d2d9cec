"""Install, upgrade, list and pack modules. Source: command line reference 1.2; Puppet 7.23's own output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, NotFound
from shared.process.cli import flag, invalid_option, maybe_text
from shared.process.command import CommandSpec
from shared.process.log import LEVELS, for_console
from shared.settings import AgentSettings, MasterSettings, load

from ..console import say as complain_with
from ..faces import JsonFaceOptions
from ..progress import ProgressLine

_COMMON = frozenset(("help", "json", "render_as", "modulepath"))
_COLOURS = {"cyan": "\x1b[0;36m", "red": "\x1b[0;31m", "bg_red": "\x1b[0;41m"}


@dataclass(frozen=True, slots=True)
class ModuleOptions(JsonFaceOptions):
    """The command line of `puppet module`."""

    force: bool = flag("overwrite files, and ignore changes and dependents; implies --ignore-dependencies", "-f")
    ignore_dependencies: bool = flag("only the module itself")
    ignore_changes: bool = flag("continue although files of the module were changed", "-c")
    tree: bool = flag("list: show the modules' dependencies")
    origins: bool = flag("list: with the lines of the Puppetfile that name them")
    version: str | None = maybe_text("VERSION", "a version, or a range: '>= 1.2.0 < 2.0.0', 1.x, ~ 1.2, ^1.2.3; of install also -v")
    target_dir: str | None = maybe_text("DIR", "install: where to; the first folder of the modulepath by default", "-i")
    modulepath: str | None = maybe_text("FOLDERS", "folders of modules, in place of the environment's")


@dataclass(frozen=True, slots=True)
class InstallOptions(ModuleOptions):
    """The command line of `puppet module install`, where `-v` is not a short form of --verbose."""

    version: str | None = maybe_text("VERSION", None, "-v")


COMMAND = CommandSpec(
    "module",
    ModuleOptions,
    actions={
        "install NAME|ARCHIVE [--version VERSION] [--target-dir DIR] [--force] [--ignore-dependencies]": "install with all dependencies",
        "upgrade NAME [--version VERSION] [--force] [--ignore-dependencies] [--ignore-changes]": "replace a module by a newer version",
        "uninstall NAME [--version VERSION] [--force] [--ignore-changes]": "remove a module",
        "list [--tree] [--origins] [--json]": "print the modules that are installed",
        "changes PATH [--json]": "print the files of a module that were changed",
        "search TERM [--json]": "search the Forge",
        "build [PATH]": "pack a module",
    },
    setting_docs={
        "--environment NAME": "the environment whose modulepath counts",
        "--module_repository URL": "where modules come from, if not from the Forge",
    },
    notes="""Archives are treated as hostile: the settings module_archive_size, module_unpacked_size, module_unpacked_ratio and
    module_files limit them, and the checksum must be the one that the Forge names.

    Exit codes: 0; 1 when something was wrong.""",
)


def run(argv: Sequence[str]) -> int:
    """Run `puppet module …` and return the exit code."""
    options, flags = (replace(COMMAND, options=InstallOptions) if "install" in argv else COMMAND).parse(argv)
    if options.help:
        print(COMMAND.help())
        return 0
    options.check_options()
    action = options.action
    if action not in COMMAND.action_docs:
        raise options.unknown_action(COMMAND.action_docs)
    (usage,) = (words for words in COMMAND.actions if words.split()[0] == action)
    for name in (field.name for field in fields(ModuleOptions) if "option" in field.metadata):
        option = f"--{name.replace('_', '-')}"
        if name not in _COMMON and f"[{option}" not in usage and getattr(options, name) not in (None, False):
            raise invalid_option(f"module {action}", option)
    actions: dict[str, Callable[[_Site], int]] = {
        "install": _install, "upgrade": _upgrade, "uninstall": _uninstall, "list": _list, "changes": _changes, "search": _search,
        "build": _build,
    }  # fmt: skip
    if action == "build":
        if len(options.names) > 1:
            options.exactly(1)
    else:
        options.exactly(0 if action == "list" else 1)
    os.umask(0o022)  # whoever installs a module, agents read it
    return actions[action](_Site.of(options, flags))


main = replace(COMMAND, call=run)


@dataclass(frozen=True, slots=True)
class _Site:
    """The values of the settings and the command line."""

    options: ModuleOptions
    agent: AgentSettings
    master: MasterSettings

    @classmethod
    def of(cls, options: ModuleOptions, flags: dict[str, Any]) -> _Site:
        return cls(options, load(AgentSettings, section="user", flags=flags), load(MasterSettings, section="user", flags=flags))

    def say(self, level: str, text: str) -> None:
        """Print a message: on standard output, but warnings and errors."""
        least = "debug" if self.agent.debug else "info" if self.agent.verbose else self.agent.log_level
        if LEVELS[level] < LEVELS[least]:
            return
        if LEVELS[level] >= LEVELS["warning"]:
            complain_with(level, text)
        else:
            print(f"{level.capitalize()}: {for_console(text)}")
            sys.stdout.flush()

    def paint(self, colour: str, text: str) -> str:
        if self.agent.color == "false" or not sys.stdout.isatty():
            return text
        return f"{_COLOURS[colour]}{text}\x1b[0m"

    @property
    def environment(self) -> Any:
        from ..environment import environment_of

        return environment_of(self.master, modulepath=self.options.modulepath or "")

    @property
    def modulepath(self) -> tuple[Path, ...]:
        """Return the folders of modules; that of --target-dir first."""
        folders = [Path(folder) for folder in self.environment.modulepath]
        if self.options.target_dir is not None:
            folders.insert(0, Path(self.options.target_dir).absolute())
        if not folders:
            raise ConfigError("The modulepath is empty", hint="Name a folder with --target-dir, or some with --modulepath.")
        return tuple(dict.fromkeys(folders))

    def installed(self) -> Any:
        from ..modules.modulepath.installed import read_installed

        return read_installed(self.modulepath, strict=self.master.strict, warn=lambda text: self.say("warning", text))


def _install(site: _Site) -> int:
    from ..modules.forge import forge_of
    from ..modules.modulepath.installation import ModuleInstaller
    from ..modules.modulepath.placement import placement

    options = site.options
    (name,) = options.names
    target = site.modulepath[0]
    site.say("notice", f"Preparing to install into {target} ...")
    forge = forge_of(site.agent, lambda text: site.say("warning", text))
    with ProgressLine() as line, placement(_limits(site)) as modules:
        installer = ModuleInstaller(forge, site.installed(), modules, site.say, _progress(line), options.force, options.ignore_dependencies)
        done = asyncio.run(installer.install(name, target, options.version or ""))
    if done.unchanged:
        site.say("notice", f"Module {name} {done.unchanged} is already installed.")
    else:
        _print_tree(site, done)
    return 0


def _upgrade(site: _Site) -> int:
    from ..modules.errors import AlreadyNewest
    from ..modules.forge import forge_of
    from ..modules.modulepath.installation import ModuleInstaller
    from ..modules.modulepath.placement import placement
    from ..modules.releases.metadata import dashed

    options = site.options
    name = dashed(options.names[0])
    site.say("notice", f"Preparing to upgrade '{name}' ...")
    forge = forge_of(site.agent, lambda text: site.say("warning", text))
    try:
        with ProgressLine() as line, placement(_limits(site)) as modules:
            installer = ModuleInstaller(
                forge,
                site.installed(),
                modules,
                site.say,
                _progress(line),
                options.force,
                options.ignore_dependencies,
                options.ignore_changes,
            )
            done = asyncio.run(installer.upgrade(name, options.version or ""))
    except AlreadyNewest as err:
        site.say("notice", str(err))
        return 0
    _print_tree(site, done)
    return 0


def _uninstall(site: _Site) -> int:
    from ..modules.errors import with_v
    from ..modules.modulepath.placement import placement
    from ..modules.modulepath.removal import uninstall
    from ..modules.releases.metadata import dashed

    options = site.options
    name, version = dashed(options.names[0]), options.version or ""
    shown = f" ({site.paint('cyan', with_v(version))})" if version else ""
    site.say("notice", f"Preparing to uninstall '{name}'{shown} ...")
    with placement(_limits(site)) as modules:
        module = uninstall(name, site.installed(), modules, version=version, force=options.force, ignore_changes=options.ignore_changes)
    removed = f" ({site.paint('cyan', with_v(module.version))})" if module.version else ""
    print(f"Removed '{name}'{removed} from {module.directory}")
    return 0


def _list(site: _Site) -> int:
    from ..modules.modulepath.listing import ModuleListing
    from ..modules.puppetfiles.origins import origins_of

    options, environment = site.options, site.environment
    installed = site.installed()
    if not (options.origins or options.as_json):
        listing = ModuleListing(installed, site.paint)
        for warning in listing.warnings():
            site.say("warning", warning)
        sys.stdout.write(listing.text(tree=options.tree))
        return 0
    origins = origins_of(
        Path(environment.root), site.modulepath, base=site.master.basemodulepath, from_command_line=options.modulepath is not None
    )
    if options.as_json:
        listing = ModuleListing(installed)
        data = {
            "environment": environment.name,
            "modulepath": listing.data(origins.of_module),
            "missing": [{"name": module.title, "line": module.line, **module.to_data()} for module in origins.missing],
        }
        sys.stdout.buffer.write(dumps_pretty(data))
        return 0
    listing = ModuleListing(installed, site.paint, origins.text_of, origins.folders)
    for warning in listing.warnings():
        site.say("warning", warning)
    for module in origins.missing:
        site.say("warning", f"The Puppetfile declares {module.title} in line {module.line}, which is not installed")
    sys.stdout.write(listing.text(tree=options.tree))
    return 0


def _changes(site: _Site) -> int:
    from ..modules.releases.checksums import changed_files, module_root

    (path,) = site.options.names
    root = module_root(Path(path))
    if root is None:
        raise NotFound(f'Could not find a valid module at "{for_console(path)}"', hint="A module has a metadata.json.")
    changed = changed_files(root)
    if site.options.as_json:
        sys.stdout.buffer.write(dumps_pretty(changed))
        return 0
    if changed:
        site.say("warning", f"{len(changed)} files modified")
    else:
        site.say("notice", "No modified files")
    print("\n".join(map(for_console, changed)))
    return 0


def _search(site: _Site) -> int:
    from ..modules.forge import forge_of

    (term,) = site.options.names
    forge = forge_of(site.agent)
    if not site.options.as_json:
        site.say("notice", f"Searching {forge.shown_url} ...")
    found = asyncio.run(forge.search(term))
    if site.options.as_json:
        sys.stdout.buffer.write(dumps_pretty([module.to_data() for module in found]))
        return 0
    if not found:
        print(f"No results found for '{for_console(term)}'.")
        return 0
    rows = [("NAME", "VERSION", "DESCRIPTION", "KEYWORDS")]
    rows += [tuple(map(_one_line, (m.name, m.version, m.summary, " ".join(m.tags)))) for m in found]  # type: ignore[misc]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])).rstrip())
    return 0


def _build(site: _Site) -> int:
    from ..modules.releases.building import build
    from ..modules.releases.checksums import module_root

    path = Path(site.options.names[0] if site.options.names else ".")
    root = path.absolute() if site.options.names else module_root(path)
    if root is None or not root.is_dir():
        raise NotFound(f"Unable to find metadata.json in {path.absolute()} or any folder above", hint="Call it in the folder of a module.")
    site.say("notice", f"Building {root} for release")
    print(f"Module built: {build(root, _limits(site))}")
    return 0


def _limits(site: _Site) -> Any:
    from ..modules.releases.archives import ModuleArchiveLimits

    return ModuleArchiveLimits.of(site.agent)


def _progress(line: ProgressLine) -> Callable[[str, int], None]:
    """Return the display of the progress of an archive; it is only seen when that takes long."""
    return lambda name, size: line.show(f"{name}: {size / 2**20:.1f} MiB") if sys.stderr.isatty() else None


def _one_line(text: str) -> str:
    return " ".join(for_console(text[:500]).split())


def _print_tree(site: _Site, done: Any) -> None:
    """Print the installed modules, below their folder."""
    from ..modules.modulepath.listing import TreeNode, drawn, shown_version

    def node(module: Any) -> TreeNode:
        text = f"{module.name} ({site.paint('cyan', shown_version(module.previous, module.version))})"
        place = "" if module.folder == done.folder else f" [{module.folder}]"
        return TreeNode(text + place, tuple(map(node, module.dependencies)))

    sys.stdout.write(f"{done.folder}\n{drawn([node(done.tree)])}")
