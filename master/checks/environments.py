"""Check the environments: their configuration, manifests, templates and hiera.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from environments.directories import Environment, Environments
from environments.first import is_untouched
from environments.hiera.data.config_reader import read_config
from environments.hiera.data.files import parse_json, parse_yaml
from environments.listings.manifests import manifests_below, problems, source_of
from environments.settings import environment_settings
from shared.errors import BadData, PuppetError
from shared.names import FIRST_SEGMENTS
from shared.settings import MasterSettings, package_modules

from .findings import Finding, run_check

AREA: Final = "environments"
DATA_FOLDERS: Final = ("data", "hieradata")  # where data is by default, and by habit


def check(settings: MasterSettings) -> list[Finding]:
    """Return the files that cannot be read or do not parse, in any environment."""
    findings = run_check(AREA, lambda: _folders(settings))
    environments = Environments(environment_settings(settings))
    for name in environments.names():
        findings += run_check(AREA, partial(_environment, settings, environments, name))
    if settings.site_hiera_config.exists():
        findings += run_check(AREA, lambda: _hiera(settings.site_hiera_config, "global", settings))
    return findings


def _folders(settings: MasterSettings) -> Iterator[Finding]:
    first_start = is_untouched(settings)  # then the master makes the environment itself
    for path in settings.environmentpath:
        if not path.is_dir() and not first_start:
            yield Finding(AREA, "error", f"There is no folder of environments {path}", "The setting is environmentpath.")
        for name in sorted(FIRST_SEGMENTS):
            if (path / name).is_dir():
                hint = "URLs of masters begin with that word: give the folder another name."
                yield Finding(AREA, "warning", f"The environment {path / name} is not served, because its name is reserved", hint)
    for folder in map(Path, package_modules()):
        if folder not in settings.basemodulepath and (names := sorted(path.name for path in folder.iterdir() if path.is_dir())):
            message = f"The modules in {folder} are not in basemodulepath: {', '.join(names)}"
            yield Finding(AREA, "notice", message, "Agents whose packages lack types such as cron get them from there.")
    if not first_start and not Environments(environment_settings(settings)).has("production"):
        environmentpath = ", ".join(map(str, settings.environmentpath))
        yield Finding(
            AREA, "warning", "There is no environment production, in which every agent begins", f"Make the folder in {environmentpath}."
        )


def _environment(settings: MasterSettings, environments: Environments, name: str) -> Iterator[Finding]:
    yield from check_code(settings, environments.read(name))


def check_code(settings: MasterSettings, environment: Environment) -> Iterator[Finding]:
    """Yield the files of an environment that do not parse, and missing files that it refers to."""
    manifest = Path(environment.manifest) if environment.manifest else None
    if manifest is not None and not manifest.exists():
        hint = "Nodes then have only the classes that the node terminus names."
        yield Finding(AREA, "warning", f"The environment {environment.name} has no main manifest {manifest}", hint)
    elif manifest is not None:
        yield from _check_manifests(sorted(manifests_below(manifest)) if manifest.is_dir() else [manifest], settings)
    for folder in map(Path, environment.modulepath):
        if not folder.is_dir():
            if folder not in settings.basemodulepath and str(folder) != f"{environment.root}/modules":
                hint = "The setting is modulepath in its environment.conf."
                yield Finding(AREA, "warning", f"The environment {environment.name} has no folder of modules {folder}", hint)
            continue
        for module in sorted(path for path in folder.iterdir() if path.is_dir()):
            for subfolder in ("manifests", "functions", "types"):
                yield from _check_manifests(sorted(manifests_below(module / subfolder)), settings)
            yield from _check_manifests(sorted((module / "templates").rglob("*.epp")), settings, epp=True)
            if (module / "hiera.yaml").exists():
                yield from _hiera(module / "hiera.yaml", "module", settings)
    hiera_file = Path(environment.root) / "hiera.yaml"
    if hiera_file.exists():
        yield from _hiera(hiera_file, "environment", settings)
    for name in DATA_FOLDERS:
        yield from _data_problems(Path(environment.root) / name)


def _data_problems(folder: Path) -> Iterator[Finding]:
    """Yield the files of data below a folder that do not parse."""
    for path in sorted(folder.rglob("*")):
        parse = {".yaml": parse_yaml, ".yml": parse_yaml, ".eyaml": parse_yaml, ".json": parse_json}.get(path.suffix)
        if parse is None or not path.is_file():
            continue
        try:
            parse(path.read_bytes())
        except (BadData, OSError) as err:
            reason = err.message if isinstance(err, BadData) else err.strerror
            yield Finding(AREA, "error", f"Unable to parse ({path}): {reason}")


def _check_manifests(files: list[Path], settings: MasterSettings, *, epp: bool = False) -> Iterator[Finding]:
    for file in files:
        try:
            source = source_of(file)
        except PuppetError as err:
            yield Finding.of(AREA, err)
            continue
        for issue in problems(source, settings.strict, epp=epp):
            yield Finding(AREA, "error" if issue.severity == "error" else "warning", str(issue), issue.hint)


def _hiera(path: Path, layer: str, settings: MasterSettings) -> list[Finding]:
    findings: list[Finding] = []
    try:
        read_config(
            str(path),
            path.read_bytes(),
            layer,
            codedir=str(settings.codedir),
            warn=lambda text: findings.append(Finding(AREA, "warning", text)),
        )
    except (PuppetError, OSError) as err:
        findings.append(Finding.of(AREA, err))
    return findings
