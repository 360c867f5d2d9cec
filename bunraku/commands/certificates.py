"""`puppet cert`, `puppet ca` and `puppet certificate`. Source: command line reference 2.4."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ca.commands import lifecycle, puppet_cert
from ca.commands.site import CaSite, Console
from ca.configured import audit_of, ca_options, key_kind
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from shared.errors import ConfigError, NotFound
from shared.process import daemon
from shared.process.cli import CommandOptions, declare_options
from shared.process.service import account_of, make_room
from shared.settings import MasterSettings, flags_of, load

from ..faces import unknown_action

HELP = """Usage: puppet certificate ACTION [NAME] --ca-location local|remote|only

Actions:
  find NAME      print a certificate; `ca` is the CA's own
  list           names whose requests wait
  sign NAME      sign a request
  generate NAME  local, only: make a key and a certificate; remote: use puppet agent
  destroy NAME   remove certificate and request, without revoking

local and only: the CA in this host's cadir. remote: the CA at ca_server, asked with this host's certificate."""


def place_for(flags: dict[str, Any], *, make: bool = False) -> CaSite:
    """Return the CA of this host, as the settings say; `make`: its folders, where root is the first to need them."""
    settings = load(MasterSettings, section="master", flags=flags)
    if make and os.geteuid() == 0 and settings.ca:
        _for_the_master(settings)
    return CaSite(
        CaFiles.at(settings.cadir),
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


def cert(argv: Sequence[str]) -> int:
    """Run `puppet cert …`; the exit code."""
    return _run(puppet_cert.cert, argv)


def ca(argv: Sequence[str]) -> int:
    """Run `puppet ca …`; the exit code."""
    return _run(puppet_cert.ca, argv)


def _run(command: Callable[..., int], argv: Sequence[str]) -> int:
    flags, arguments = _flags(argv)
    for options in (puppet_cert.CertOptions, lifecycle.LifecycleOptions):
        declare_options(options, MasterSettings)
    if not arguments or {"--help", "-h"} & set(arguments):
        return command(arguments, CaSite(CaFiles.at(Path()), SslDir(Path(), "none")))
    try:
        place = place_for(flags, make=puppet_cert.makes_ca(arguments))
    except ConfigError as err:
        Console(sys.stdout, sys.stderr).error(f"Could not initialize: {err}", err.hint)
        return puppet_cert.NO_CA
    return command(arguments, place)


def _flags(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """
    Return the settings given as options, and the words that are left.

    The names of a certificate to make are left, too: they are not those of this host's own; and so is --noop, an option of actions
    on the CA as a whole.
    """
    without = ["dns_alt_names", *(["noop"] if set(puppet_cert.LIFECYCLE_ACTIONS) & set(argv) else [])]
    return flags_of(argv, MasterSettings, without=without)


def certificate(argv: Sequence[str]) -> int:
    """Run `puppet certificate …`; the exit code."""
    words = list(argv)
    declare_options(CommandOptions, MasterSettings)
    if not words or {"--help", "-h"} & set(words):
        print(HELP)
        return 0
    location, words = _location(words)
    if location == "remote":
        return asyncio.run(_remote(words))
    flags, arguments = _flags(words)
    action, *names = arguments or ["list"]
    place = place_for(flags, make=action == "generate")
    if action == "find":
        return _find(place, names)
    local = {"list": ["list", *names], "sign": ["sign", *names], "generate": ["generate", *names], "destroy": ["clean", *names]}
    if action not in local:
        raise unknown_action("certificate", action, (*local, "find"))
    return min(puppet_cert.cert(local[action], place), 1)


def _location(words: list[str]) -> tuple[str, list[str]]:
    """Return the value of --ca-location, and the other words; ConfigError when it is missing."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in ("--ca-location", "--ca_location"):
            count = 1 if equals else 2
            value = value if equals else "".join(words[index + 1 : index + 2])
            if value not in ("local", "remote", "only"):
                raise ConfigError("Valid values for ca-location are 'remote', 'local', 'only'.")
            return value, words[:index] + words[index + count :]
    raise ConfigError("The option --ca-location is required: local, remote or only", hint="Try 'puppet certificate --help'.")


def _find(place: CaSite, names: list[str]) -> int:
    from ca.setup.bootstrap import open_authority
    from certs.files import bundles

    if len(names) != 1:
        raise ConfigError(f"puppet certificate find takes 1 argument, but you gave {len(names)}")
    authority = open_authority(place.files, place.rules)
    certificate = authority.certificate if names[0] == "ca" else authority.signed_certificate(names[0].lower())
    if certificate is None:
        raise NotFound(f"Could not find certificate {names[0]}")
    sys.stdout.write(bundles.dump([certificate]).decode("ascii"))
    return 0


async def _remote(words: list[str]) -> int:
    """Run the action against the CA at ca_server, with this host's certificate; return the exit code."""
    from shared.indirector import Binding
    from shared.indirector.rest import Rest
    from shared.models.certificate import CERTIFICATE
    from shared.models.certificate_status import CERTIFICATE_STATUS, CertificateStatus
    from shared.settings import AgentSettings

    from ..peer import open_server

    flags, arguments = flags_of(words, AgentSettings)
    action, *names = arguments or ["list"]
    if action != "list" and len(names) != 1:
        raise ConfigError(f"puppet certificate {action} takes 1 argument, but you gave {len(names)}")
    settings = await asyncio.to_thread(load, AgentSettings, section="agent", flags=flags)
    async with open_server(settings, "ca") as server:
        states = Binding(CERTIFICATE_STATUS, Rest(CERTIFICATE_STATUS, server, prefix="puppet-ca"))
        if action == "find":
            certificate = await Binding(CERTIFICATE, Rest(CERTIFICATE, server, prefix="puppet-ca")).find(names[0])
            if certificate is None:
                raise NotFound(f"Could not find certificate {names[0]}")
            sys.stdout.write(certificate.pem.decode("ascii", "replace"))
        elif action == "list":
            for status in await states.search("any", state="requested") or []:
                if status.state != "requested":  # CAs before 6 name all, whatever is asked
                    continue
                print(f"{status.name} (SHA256) {status.fingerprint}")
        elif action == "sign":
            await states.save(CertificateStatus(name=names[0], desired_state="signed"))
            print(f"Signed certificate request for {names[0]}")
        elif action == "destroy":
            await states.destroy(names[0])
            print(f"Removed certificate and request of {names[0]}")
        else:
            raise ConfigError(
                f"'certificate' cannot {action} on a remote CA",
                hint="On the host itself, 'puppet agent --waitforcert 0' makes the key and the request.",
            )
    return 0
