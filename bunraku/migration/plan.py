"""The plan of a migration: the puppet.conf of this master, and the files that it needs, from those of an existing server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from certs.files.ssldir import SslDir
from master.checks.findings import Finding
from shared.errors import ConfigError
from shared.settings import MasterSettings
from shared.settings.conf import with_setting, without_setting

from .conf_d import findings_of, settings_of
from .existing import ExistingServer

OWN_PLACES = ("vardir", "logdir", "rundir", "ssldir", "cadir")
"""Folders that are this master's own, wherever the server had its."""
CONFIGURATION = ("fileserverconfig", "route_file", "site_hiera_config", "trusted_oid_mapping_file")
PRIVATE_MODE, PUBLIC_MODE = 0o640, 0o644


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to copy, with the mode of the copy."""

    source: Path
    target: Path
    mode: int = PUBLIC_MODE


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """
    What a migration writes.

    Attributes:
        conf: the text of puppet.conf.
        files: configuration; `identity`: the host's key, certificate and the CA's certificates; `data`: facts and nodes of past runs.
        adopts_ca: whether the server's CA is copied to cadir.
        findings: what a person has to know about the settings.
    """

    server: ExistingServer
    target: MasterSettings
    conf: str
    files: tuple[PlannedFile, ...]
    identity: tuple[PlannedFile, ...]
    data: tuple[PlannedFile, ...]
    adopts_ca: bool
    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def of(cls, server: ExistingServer, target: MasterSettings) -> MigrationPlan:
        """Return the plan for a server; `target` are the settings of this master before it has a puppet.conf. Blocks for the disk."""
        findings = list(_of_settings(server))
        conf = _conf(server, target)
        return cls(
            server,
            target,
            conf,
            tuple(_to_copy(_configuration(server, target))),
            tuple(_to_copy(_identity(server, target))),
            tuple(_to_copy(_data(server, target))),
            server.is_ca and server.settings.cadir.resolve() != target.cadir.resolve(),
            tuple(findings),
        )


def _of_settings(server: ExistingServer) -> Iterator[Finding]:
    for name, (entry, why) in server.refused.items():
        message = f"{name} = {entry.value} is left out (file: {server.conf.path}, line: {entry.line}): it is not supported here"
        yield Finding("configuration", "warning", message, why)
    yield from findings_of(server.conf_d)
    if server.settings.ca and not server.is_ca:
        yield Finding(
            "certificates", "notice", "The server is not the CA, and neither will this master be", "The setting ca becomes false."
        )


def _conf(server: ExistingServer, target: MasterSettings) -> str:
    """Return the server's puppet.conf with what differs for this master in [server]; [main] is the agents' as well and stays."""
    path = server.confdir / "puppet.conf"
    text = path.read_text("utf-8") if path.is_file() else ""
    for name, (entry, _) in server.refused.items():
        for section in ("main", "master"):
            text, line = without_setting(text, section, name)
            if line is not None and section == "main":
                text = with_setting(text, "agent", name, entry.value)
    settings = server.settings
    wanted: dict[str, str] = {}
    if settings.codedir != target.codedir:
        wanted["codedir"] = str(settings.codedir)
    wanted |= {name: str(getattr(target, name)) for name in OWN_PLACES if settings.source_of(name) is not None}
    wanted |= {name: value for name, value in settings_of(server.conf_d).items() if settings.source_of(name) is None}
    if settings.ca and not server.is_ca:
        wanted["ca"] = "false"
    if settings.source_of("facts_terminus") is None and any((settings.server_datadir / "facts").glob("*.json")):
        wanted["facts_terminus"] = "json"  # as Puppet 6 and later store facts
    for name, value in wanted.items():
        text = with_setting(text, "server", name, value)
    return text


def _configuration(server: ExistingServer, target: MasterSettings) -> Iterator[PlannedFile]:
    """Yield the files of confdir that settings do not place elsewhere."""
    settings = server.settings
    rules = server.folder / "conf.d" / "auth.conf"
    if settings.source_of("rest_authconfig") is None:
        yield PlannedFile(rules if rules.is_file() else settings.rest_authconfig, target.rest_authconfig)
    for name in CONFIGURATION:
        source, own = getattr(settings, name), getattr(target, name)
        if source.parent == server.confdir:
            yield PlannedFile(source, own)
    yield PlannedFile(server.confdir / "puppetdb.conf", target.confdir / "puppetdb.conf")
    if isinstance(settings.autosign, Path) and settings.source_of("autosign") is None:
        yield PlannedFile(settings.autosign, target.confdir / settings.autosign.name)


def _identity(server: ExistingServer, target: MasterSettings) -> Iterator[PlannedFile]:
    try:
        old, new = SslDir.of(server.settings), SslDir.of(target)
    except ConfigError:
        return
    named = SslDir.at(new.root, old.certname)
    yield PlannedFile(old.localcacert, new.localcacert)
    yield PlannedFile(old.hostcrl, new.hostcrl)
    yield PlannedFile(old.hostcert, named.hostcert)
    yield PlannedFile(old.hostprivkey, named.hostprivkey, PRIVATE_MODE)
    yield PlannedFile(old.hostpubkey, named.hostpubkey)


def _data(server: ExistingServer, target: MasterSettings) -> Iterator[PlannedFile]:
    for old, new, suffix in (
        (server.settings.yamldir, target.yamldir, "yaml"),
        (server.settings.server_datadir, target.server_datadir, "json"),
    ):
        for kind in ("facts", "node"):
            for path in sorted((old / kind).glob(f"*.{suffix}")):
                yield PlannedFile(path, new / kind / path.name, PRIVATE_MODE)


def _to_copy(files: Iterator[PlannedFile]) -> Iterator[PlannedFile]:
    """Yield the files that are there, and not in their place already."""
    for file in files:
        if file.source.is_file() and os.path.realpath(file.source) != os.path.realpath(file.target):
            yield file
