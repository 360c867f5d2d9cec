"""Manage the certificate authority. Source: command line reference 2.4."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from ca.commands import lifecycle, puppet_cert
from ca.commands.site import CaSite, Console
from ca.configured import audit_of, ca_options, ca_store, key_kind
from certs.files.ssldir import SslDir
from shared.errors import ConfigError
from shared.process import daemon
from shared.process.command import CommandSpec
from shared.process.service import account_of, make_room
from shared.settings import MasterSettings, flags_of, load


def place_for(flags: dict[str, Any], *, make: bool = False) -> CaSite:
    """Return the CA of this host, according to the settings; `make`: create its folders if root is the first to need them."""
    settings = load(MasterSettings, section="master", flags=flags)
    if make and os.geteuid() == 0 and settings.ca:
        _for_the_master(settings)
    return CaSite(
        ca_store(settings),
        SslDir.of(settings),
        rules=ca_options(settings),
        ca=settings.ca,
        ca_name=settings.ca_name,
        dns_alt_names=settings.dns_alt_names,
        generate=key_kind(settings).generate,
        report=audit_of(settings, check=False),
        owner=account_of(settings),
    )


def _for_the_master(settings: MasterSettings) -> None:
    """A CA and logs that root makes here belong to the account that the master will run as, when there is one."""
    account = account_of(settings)
    if account is None:
        return  # no such account: the master cannot run as it either, and will say so
    uid, gid = account
    make_room(settings)
    if not settings.cadir.exists():
        daemon.own({settings.cadir: 0o750}, uid, gid)


def run_on_ca(spec: CommandSpec[Any], command: Callable[..., int], argv: Sequence[str]) -> int:
    """Run a command with the CA of this host; return the exit code."""
    # Left are the names of a certificate to make, which are not those of this host's own, and --noop of actions on the CA as a whole.
    without = ["dns_alt_names", *(["noop"] if set(puppet_cert.LIFECYCLE_ACTIONS) & set(argv) else [])]
    flags, arguments = flags_of(argv, MasterSettings, without=without)
    if not arguments or {"--help", "-h"} & set(arguments):
        print((lifecycle.COMMAND if arguments[:1] in (["adopt"], ["rollover"]) else spec).help())
        return 0
    try:
        place = place_for(flags, make=puppet_cert.makes_ca(arguments))
    except ConfigError as err:
        Console(sys.stdout, sys.stderr).error(f"Could not initialize: {err}", err.hint)
        return puppet_cert.NO_CA
    with closing(place.store):
        return command(arguments, place)


main = replace(puppet_cert.COMMAND, is_face=False, call=lambda argv: run_on_ca(puppet_cert.COMMAND, puppet_cert.cert, argv))
