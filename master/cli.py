"""`puppet master`: options, the daemon, `--compile`. Source: command line reference 2.3."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared import VERSIONS
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, PuppetError, text_with_hint
from shared.process import log as logs
from shared.process.cli import DEBUGGING, CommandOptions, flag, run_main, text
from shared.process.command import CommandSpec
from shared.process.daemon import hear_hangups
from shared.process.parts import PARTS, require
from shared.process.service import account_of, make_room
from shared.settings import AgentSettings, MasterSettings, load, read, unknown_settings
from shared.settings.master import settings_beside_master
from shared.settings.store import SERVING_DEFAULTS

from .process import CHANGED_USER, become_service_account, serve
from .service.folders import written_folders

log = logging.getLogger("puppet.master")

COMPILE_FAILED = 30


def main(argv: Sequence[str] | None = None) -> int:
    """Run `puppet master …`; return the exit code."""
    return run_main(lambda: run(list(sys.argv[1:] if argv is None else argv)))


@dataclass(frozen=True, slots=True)
class MasterOptions(CommandOptions):
    """The options that are not settings."""

    compile: str = text("NODE", "print the catalog of a node as JSON, with the facts that are stored for it", "-c")
    check: bool = flag(
        "check configuration, certificates, permissions, environments, compiling processes, the store or PuppetDB and ports; print all "
        "problems with a remedy. Nothing is changed; 0 when there is no error, else 1"
    )
    json: bool = flag("with --check: print an object")
    version: bool = flag("print the version", "-V")


COMMAND = CommandSpec(
    "master",
    MasterOptions,
    (MasterSettings,),
    usage=["[--no-daemonize] [--verbose | --debug] [--logdest DEST] [--SETTING VALUE ...]", "--compile NODE", "--check [--json]"],
    text="""Serves catalogs, files and certificates to agents of Puppet 3.8 to 8, over TLS, on port 8140. The first start makes a
    certificate authority in $ssldir/ca, unless there is one.""",
    setting_docs={
        "--no-daemonize": "stay in the foreground and log to the console",
        "--masterport PORT": "listen on another port (0: any free one, which is logged)",
        "--logdest DEST, -l": "console, syslog, journal, or files' absolute paths; comma-separated",
    },
    aliases={**DEBUGGING, "-l": "--logdest"},
    notes="""TERM ends it when pending requests are answered, at the latest after drain_timeout; a second TERM at once. HUP reloads
    certificates, revocation lists, auth.conf and environments without dropping connections.

    Exit codes: 0 ended as asked, 1 could not start, 30 a compile failed, 39 could not change to the user, 70 an essential part failed
    repeatedly; the log says which.""",
)


def run(argv: list[str]) -> int:
    """Run the command; return the exit code. Raise PuppetError when it cannot start."""
    options, flags = COMMAND.parse(argv)
    if options.help or options.version:
        print(COMMAND.help() if options.help else VERSIONS)
        return 0
    if options.arguments:
        raise ConfigError(f"The puppet master command does not take parameters: {options.arguments[0]}", hint="Try 'puppet master --help'.")
    if options.check or options.compile:
        hear_hangups()
    if options.check:
        return run_checks(flags, as_json=options.json)
    if options.json:
        raise ConfigError("--json is an option of --check", hint="Try 'puppet master --help'.")
    require(*PARTS)
    node = options.compile
    settings = settings_beside_master(flags) if node else settings_of(flags)
    foreground = bool(node) or not settings.daemonize
    make_room(settings, written_folders(settings))
    logs.set_up_by(settings, foreground=foreground, ident="puppet-master")
    for sentence in unknown_settings(read(settings.config), MasterSettings, AgentSettings):
        log.warning("%s", sentence)
    if node:
        # Without such an account there is no service either that root could lock out.
        return print_catalog(settings, node) if account_of(settings) is None or become_service_account(settings) else CHANGED_USER
    return serve(settings, lambda: settings_of(flags))


def settings_of(flags: Mapping[str, Any]) -> MasterSettings:
    """Return the settings of a master that serves; `flags` are those of the command line. Raises ConfigError when one is wrong."""
    return load(MasterSettings, section="master", flags=flags, application=SERVING_DEFAULTS)


def run_checks(flags: Mapping[str, Any], *, as_json: bool) -> int:
    """Check everything that a start needs, and print the findings; return 1 when there is an error, else 0."""
    from .checks.findings import Finding
    from .checks.report import check, report

    try:
        findings = check(settings_of(flags), datetime.now(UTC))
    except ConfigError as err:
        findings = [Finding.of("configuration", err)]
    return report(findings, sys.stdout, as_json=as_json)


def print_catalog(settings: MasterSettings, node: str) -> int:
    """Print a node's catalog and return 0; log an error and return COMPILE_FAILED."""
    from .wiring import local_catalog

    try:
        catalog = asyncio.run(local_catalog(settings, node))
    except PuppetError as err:
        log.error("%s", text_with_hint(err))
        log.error("Failed to compile catalog for node %s", node)
        return COMPILE_FAILED
    sys.stdout.buffer.write(dumps_pretty(catalog))
    return 0
