"""Check that a master can be built from puppet.conf and the other configuration files."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from certs.oids import OidNames
from environments.directories import Environments
from environments.settings import environment_settings
from shared.client import Client
from shared.process import daemon
from shared.settings import AgentSettings, MasterSettings, read, unknown_settings

from ..authorization.auth_conf import parse_rules
from ..authorization.rules import AccessRequest, decide
from ..bindings import bind
from ..endpoints.routes import default_rules
from ..observability.metrics import Metrics
from ..pools.configured import compile_pool_for
from .findings import Finding, run_check

AREA: Final = "configuration"
RENEWAL: Final = "/puppet-ca/v1/certificate_renewal"
_CA_SETTING: Final = re.compile(
    r"^\s*(allow-auto-renewal|auto-renewal-cert-ttl|allow-subject-alt-names|allow-authorization-extensions)\s*[:=]", re.M
)


def check(settings: MasterSettings) -> list[Finding]:
    """Return all problems of the settings, auth.conf, fileserver.conf, routes.yaml and the programs in the settings."""
    findings: list[Finding] = []
    parts: list[Callable[[MasterSettings], Iterable[Finding] | None]] = [
        _settings,
        _rules,
        _foreign_ca_settings,
        _names,
        _wiring,
        _programs,
    ]
    for part in parts:
        findings += run_check(AREA, partial(part, settings))
    return findings


def _settings(settings: MasterSettings) -> Iterator[Finding]:
    for sentence in unknown_settings(read(settings.config), MasterSettings, AgentSettings):
        yield Finding(AREA, "warning", sentence)
    if os.geteuid() == 0 and settings.user != "root":
        daemon.account(settings.user, settings.group)
    if settings.autosign is True:
        yield Finding(
            AREA, "warning", "autosign is true: every client that reaches the master gets a certificate.", "Name a file or a program."
        )
    if settings.allow_header_cert_info and not settings.proxy_addresses:
        hint = "Set proxy_addresses to the addresses of the proxies."
        yield Finding(AREA, "warning", "allow_header_cert_info is set, but proxy_addresses is empty, so headers are ignored.", hint)
    try:
        socket.getaddrinfo(settings.certname, None)
    except OSError:
        hint = "Agents have to find this host by that name, or by another one of its certificate."
        yield Finding(AREA, "warning", f"The name {settings.certname} has no address here", hint)


def _rules(settings: MasterSettings) -> Iterator[Finding]:
    path = settings.rest_authconfig
    if not path.exists():
        return
    rules = parse_rules(path.read_text("utf-8"), str(path), OidNames.load(settings.trusted_oid_mapping_file), default_rules())
    agent = Client("agent.example.com", "192.0.2.1", authenticated=True)
    renewal = AccessRequest((RENEWAL,), "save", None, agent, url=RENEWAL, method="post")
    if settings.ca and settings.allow_auto_renewal and not decide(rules.modern, renewal).allowed:
        hint = f"Their certificates will expire. Add a rule: post {RENEWAL} for every client with a certificate (docs/operation.md)."
        yield Finding(AREA, "warning", f"{path} does not let agents renew their certificates", hint)


def _foreign_ca_settings(settings: MasterSettings) -> Iterator[Finding]:
    """Name puppetserver's settings of the CA, which this master does not read, unless puppet.conf has them."""
    if not settings.ca:
        return
    conf = read(settings.config)
    own = {name for entries in conf.sections.values() for name in entries}
    beside = settings.confdir.parent / "puppetserver" / "conf.d"
    for folder in (settings.confdir, settings.confdir / "conf.d", settings.confdir / "puppetserver" / "conf.d", beside):
        path = folder / "ca.conf"
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        for name in sorted({match.replace("-", "_") for match in _CA_SETTING.findall(text)} - own):
            hint = f"Set {name} in {settings.config}; here it is {getattr(settings, name)}."
            yield Finding(AREA, "warning", f"The CA's setting {name.replace('_', '-')} in {path} is not read", hint)


def _names(settings: MasterSettings) -> None:
    OidNames.load(settings.trusted_oid_mapping_file)


def _wiring(settings: MasterSettings) -> None:
    """Do the same as a start: bind routes, termini, plugins, report processors, mounts."""
    environments = Environments(environment_settings(settings))
    bind(settings, environments, compile_pool_for(settings, environments, Metrics()), None)


def _programs(settings: MasterSettings) -> Iterator[Finding]:
    commands = {"code_id_command": settings.code_id_command, "code_content_command": settings.code_content_command}
    if settings.ruby != "auto":
        commands["ruby"] = settings.ruby
    if settings.node_terminus == "exec":
        commands["external_nodes"] = settings.external_nodes
    if settings.trusted_external_command and not Path(settings.trusted_external_command).is_dir():
        commands["trusted_external_command"] = settings.trusted_external_command
    for name, command in commands.items():
        program = Path(shlex.split(command)[0]) if command.strip() else None
        if program is not None and not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            hint = "It has to be the absolute path of a file that may be executed."
            yield Finding(AREA, "error", f"The program of {name} cannot be run: {program}", hint)
