"""Find, sign and destroy certificates, here or on the CA. Source: command line reference 2.4."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from ca.commands import puppet_cert
from ca.commands.site import CaSite, Console
from shared.errors import ConfigError, NotFound
from shared.process.cli import maybe_text
from shared.process.command import CommandSpec
from shared.settings import AgentSettings, load

from ..faces import unknown_action
from .cert import place_for


@dataclass(frozen=True, slots=True)
class CertificateOptions(puppet_cert.CertOptions):
    """The command line of `puppet certificate`; the options of `puppet cert` are for a local CA."""

    ca_location: str | None = maybe_text(
        "PLACE", "local, only: the CA in this host's cadir; remote: the CA at ca_server, asked with this host's certificate"
    )


_LOCAL = {"list": "list", "sign": "sign", "generate": "generate", "destroy": "clean"}
"""The name of each action at a CA on this host."""


@CommandSpec(
    "certificate",
    CertificateOptions,
    usage=["ACTION [NAME] --ca-location local|remote|only"],
    actions={
        "find NAME": "print a certificate; `ca` is the CA's own",
        "list": "list pending requests",
        "sign NAME": "sign a request",
        "generate NAME": "local, only: make a key and a certificate; remote: use puppet agent",
        "destroy NAME": "remove certificate and request, without revoking",
    },
).main
def main(options: CertificateOptions, flags: dict[str, Any]) -> int:
    location, (action, *names) = options.ca_location, options.arguments or ("list",)
    if location is None and not options.arguments:
        print(main.help())
        return 0
    if location is None:
        raise ConfigError("The option --ca-location is required: local, remote or only", hint="Try 'puppet certificate --help'.")
    if location not in ("local", "remote", "only"):
        raise ConfigError("Valid values for ca-location are 'remote', 'local', 'only'.")
    if location == "remote":
        return asyncio.run(_remote(action, names, flags))
    place = place_for(flags, make=action == "generate")
    with closing(place.store):
        if action == "find":
            return _find(place, names)
        if action not in _LOCAL:
            raise unknown_action("certificate", action, main.action_docs)
        options = replace(options, arguments=(_LOCAL[action], *names))
        return min(puppet_cert.carry_out(options, place, Console(sys.stdout, sys.stderr)), 1)


def _find(place: CaSite, names: list[str]) -> int:
    from ca.setup.bootstrap import open_authority
    from certs.files import bundles

    if len(names) != 1:
        raise ConfigError(f"puppet certificate find takes 1 argument, but you gave {len(names)}")
    place.store.prepare()
    authority = open_authority(place.store, place.rules)
    certificate = authority.certificate if names[0] == "ca" else authority.signed_certificate(names[0].lower())
    if certificate is None:
        raise NotFound(f"Could not find certificate {names[0]}")
    sys.stdout.write(bundles.dump([certificate]).decode("ascii"))
    return 0


async def _remote(action: str, names: Sequence[str], flags: dict[str, Any]) -> int:
    """Run the action against the CA at ca_server, with this host's certificate; return the exit code."""
    from shared.indirector import Binding
    from shared.indirector.rest import Rest
    from shared.models.certificate import CERTIFICATE
    from shared.models.certificate_status import CERTIFICATE_STATUS, CertificateStatus

    from ..peer import open_server

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
