"""`puppet cert adopt` and `puppet cert rollover`: actions on a CA as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from shared.errors import ConfigError
from shared.names import quoted_for_log
from shared.process.cli import CommandOptions, flag, parse_options, text
from shared.process.command import CommandSpec
from shared.settings import MasterSettings

from ..setup import bootstrap
from ..setup.adoption import Adoption, adopt
from ..setup.rollover import CaState, Rollover, RolloverStatus
from .site import CaSite, Console

STEPS = ("start", "status", "switch", "finish")


@dataclass(frozen=True, slots=True)
class LifecycleOptions(CommandOptions):
    """The parsed command line."""

    noop: bool = flag("adopt: only print the files that would be copied, and anomalies")
    same_key: bool = flag(
        "start: make a certificate with later dates for the present key: for a CA that expires soon, whose key is safe. Agents need do "
        "nothing but fetch it (or be given it as a file) before the old one ends; there is nothing to switch"
    )
    name: str = text("NAME", "start: the name of the new CA; as a rule the old name with the next number")
    now: bool = flag("switch: before all agents had two days for fetching the new CA")
    json: bool = flag("print JSON")
    verbose: bool = flag(None, "-v", "-d", "--debug")  # without effect


COMMAND = CommandSpec(
    "cert",
    LifecycleOptions,
    (MasterSettings,),
    usage=[
        "adopt DIR [--noop] [--json]",
        "rollover start [--same-key | --name NAME] [--json]",
        "rollover status | switch [--now] | finish [--json]",
    ],
    arguments={
        "DIR": "the folder with ca_crt.pem, or the ssldir above it; it stays as it is",
        "start": "make the next CA; agents get it and its CRL, in addition to the present ones",
        "status": "print which CA signs, and which CA issued whose certificate",
        "switch": "let the new CA sign; the old one's certificates stay valid",
        "finish": "remove the old CA; refused while there is an agent with a certificate of it",
    },
    text="""adopt copies a CA that Puppet or puppetserver made into this master's empty cadir, after a look at all of it. rollover
    replaces the CA while agents work on; each step can be repeated.""",
    notes="""Agents of Puppet 8 and of this project fetch CA certificates every day (ca_refresh_interval) and renew their own
    (hostcert_renewal_interval). Older ones need ca.pem and crl.pem as files, and to enrol again; those before 6 keep only the first
    certificate of a bundle, so that they cannot enrol between switch and finish: for them, take --same-key.""",
)


def run(argv: Sequence[str], site: CaSite, console: Console) -> int:
    """Carry out `adopt …` or `rollover …` and return the exit code; errors are raised."""
    action, *rest = argv
    options, _ = parse_options(LifecycleOptions, "cert adopt", rest)
    if not site.ca:
        raise ConfigError("This host is not a CA: the setting ca is false", hint="Run it on the CA, or set ca = true.")
    if site.store.is_shared:
        raise ConfigError(
            f"puppet cert {action} works on a CA in files only, and this one is in {site.store.place}",
            hint="Stop the other masters, 'puppet state move --to files', set state = files, and move it back afterwards (docs/scale.md).",
        )
    return _adopt(options, site, console) if action == "adopt" else _rollover(options, site, console)


def _adopt(options: LifecycleOptions, site: CaSite, console: Console) -> int:
    if len(options.arguments) != 1:
        raise ConfigError("adopt takes one folder", hint="puppet cert adopt /etc/puppetlabs/puppet/ssl/ca")
    adoption = adopt(Path(options.arguments[0]), site.store.files, ssldir=site.ssldir, now=site.now(), noop=options.noop, owner=site.owner)
    if _show(adoption, _adoption_lines(adoption), options, console):
        return 0
    for sentence in adoption.odd:
        console.warning(sentence)
    console.notice(
        f"Adopted the CA in {adoption.source} as {adoption.target}" if adoption.done else f"Would adopt the CA in {adoption.source} (noop)"
    )
    return 0


def _adoption_lines(adoption: Adoption) -> list[str]:
    return [
        f"CA {adoption.subject} (SHA256) {adoption.fingerprint}, valid until {adoption.not_after}",
        *([f"Chain: {' <- '.join(adoption.chain)}"] if len(adoption.chain) > 1 else []),
        f"{len(adoption.signed)} certificates, {len(adoption.requests)} requests, {adoption.issued} lines of inventory, "
        f"{adoption.revoked} revoked; the next serial is {adoption.next_serial:#06x}",
    ]


def _rollover(options: LifecycleOptions, site: CaSite, console: Console) -> int:
    if len(options.arguments) != 1 or options.arguments[0] not in STEPS:
        words = f", not {quoted_for_log(' '.join(options.arguments))}" if options.arguments else ""
        raise ConfigError(f"rollover takes one of {', '.join(STEPS)}{words}", hint="puppet cert rollover status")
    step = options.arguments[0]
    authority = bootstrap.open_authority(site.store, site.rules, now=site.now, report=site.report)
    rollover = Rollover(authority, site.ssldir, by=site.by, report=site.report)
    if step == "start":
        status = rollover.start(site.generate, name=options.name, same_key=options.same_key)
    elif step == "switch":
        status = rollover.switch(at_once=options.now)
    elif step == "finish":
        status = rollover.finish()
    else:
        status = rollover.status()
    _show(status, _status_lines(status), options, console)
    return 0


def _show(result: Adoption | RolloverStatus, lines: Sequence[str], options: LifecycleOptions, console: Console) -> bool:
    """Show a result as lines, or as JSON; return whether it was JSON."""
    if options.json:
        console.show(json.dumps(result.to_data(), indent=2))
        return True
    for line in lines:
        console.notice(line)
    return False


def _status_lines(status: RolloverStatus) -> list[str]:
    """Return lines about the state of the roll-over, and the next step."""
    if status.old is None or status.new is None:
        return [f"No roll-over is under way. {_ca(status.signs)} signs; {len(status.signs.names)} certificates are valid"]
    lines = [
        f"Old CA: {_ca(status.old)}; {len(status.old.names)} valid certificates",
        f"New CA: {_ca(status.new)}; {len(status.new.names)} valid certificates",
        f"{status.signs.subject} signs. Agents are given both; a ca_fingerprint of new agents is now {status.bundle}",
    ]
    return [*lines, _next(status)]


def _ca(state: CaState) -> str:
    return f"{state.subject} (SHA256) {state.fingerprint}, valid until {state.not_after}"


def _next(status: RolloverStatus) -> str:
    if status.phase == "same-key":
        assert status.old is not None
        return f"Next: 'finish', when all agents have the new certificate, and they must have it by {status.old.not_after}"
    if status.phase == "started":
        return f"Next: 'switch', from {_moment(status.switch_from)} on, when agents have fetched the new CA and its CRL"
    if status.blocking:
        names = ", ".join(status.blocking[:10]) + (" ..." if len(status.blocking) > 10 else "")
        return f"Next: 'finish', when these {len(status.blocking)} have certificates of the new CA: {names}"
    return "Next: 'finish': all agents have certificates of the new CA"


def _moment(when: datetime | None) -> str:
    return when.strftime("%Y-%m-%d %H:%M UTC") if when is not None else "now"
