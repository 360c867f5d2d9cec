"""`puppet cert` and the face `puppet ca`. Source: command line reference 2.4, protocol reference 5.10."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from cryptography import x509

from certs import certificates, csr, fingerprints
from certs import text as certificate_text
from certs.files import bundles
from certs.files.ssldir import SslDir
from shared.errors import NO_SPACE, BadData, ConfigError, PuppetError
from shared.names import is_certname, quoted_for_log, valid_certname
from shared.process.cli import CommandOptions, flag, maybe_flag, parse_options, text, texts
from shared.process.command import CommandSpec
from shared.settings import MasterSettings
from shared.suggestions import did_you_mean
from shared.wire.dialects import MODERN

from ..authority import CertificateAuthority
from ..policy import SigningPolicy
from ..registry import CertificateRegistry
from ..setup import bootstrap
from ..storage.store import NameFiles
from . import lifecycle
from .site import CaSite, Console

NO_CA, FAILED = 23, 24  # exit codes
WHOSE_CA = "Run it on the CA's machine, as root (sudo) or as the account that the master runs as."


@dataclass(frozen=True, slots=True)
class CertOptions(CommandOptions):
    """The parsed command line; names are in lower case."""

    all: bool = flag("list: certificates too; sign: all requests; fingerprint: of all", "-a")
    signed: bool = flag("list: only certificates", "-s")
    pending: bool = flag("list: only requests")
    json: bool = flag("list, fingerprint: print an object, by state or by name")
    digest: str = text("DIGEST", "list, fingerprint: the digest to show", default=fingerprints.DEFAULT)
    allow_dns_alt_names: bool | None = maybe_flag("sign: accept or refuse requests with further names")
    dns_alt_names: tuple[str, ...] = texts("NAMES", "generate: further names of the certificate, comma-separated")
    subject: str = text("PATTERN", "list: only names that match")
    force: bool = flag("revoke, clean: even this master's own certificate")
    verbose: bool = flag(None, "-v", "-d", "--debug")  # without effect

    def check_options(self) -> None:
        if self.json and self.arguments[:1] not in ((), ("list",), ("fingerprint",)):
            raise ConfigError(f"--json is no option of puppet {self.command} {self.action}", hint="It is one of list and fingerprint.")

    @property
    def action(self) -> str:
        return self.arguments[0]

    @property
    def names(self) -> list[str]:
        return [name.lower() for name in self.arguments[1:]]

    @property
    def alternative_names(self) -> list[str]:
        return [name.strip() for names in self.dns_alt_names for name in names.split(",") if name.strip()]


ACTIONS = ("list", "sign", "revoke", "clean", "destroy", "generate", "print", "fingerprint", "verify", "reinventory")
LIFECYCLE_ACTIONS = ("adopt", "rollover")  # actions on the CA itself, with options of their own

COMMAND = CommandSpec(
    "cert",
    CertOptions,
    (MasterSettings,),
    usage=["ACTION [NAME...] [--all] [--digest DIGEST] [--[no-]allow-dns-alt-names] [--dns_alt_names NAMES]"],
    actions={
        "list [NAME...]": "list pending requests",
        "sign NAME... | --all": "sign requests",
        "revoke NAME|0xSERIAL...": "put certificates on the revocation list",
        "clean NAME...": "revoke certificates, and remove all files of these names",
        "generate NAME...": "make a key and a certificate for a name here",
        "print NAME...": "print a certificate as text",
        "fingerprint NAME... | --all": "print digests (`ca` is the CA's own)",
        "verify NAME...": "check a certificate",
        "reinventory": "rebuild inventory.txt",
        "adopt DIR": "take over a CA that another program made",
        "rollover STEP": "replace the CA while agents keep working",
    },
    notes="""See also: puppet cert adopt --help.

    Exit codes: 0 done, 23 there is no CA here, 24 something could not be done.""",
    parts=[lifecycle.COMMAND],
)


def parse(argv: Sequence[str]) -> CertOptions:
    """Return the parsed command line; raise ConfigError for an unknown option or action."""
    words = list(argv)
    action = next((at for at, word in enumerate(words) if not word.startswith("-") or word[2:] in ACTIONS), None)
    if action is not None:
        words[action] = words[action].removeprefix("--")  # the old form, puppet cert --list
    options, _ = parse_options(CertOptions, "cert", words)
    if not options.arguments:
        raise ConfigError("You must specify an action", hint="Try 'puppet cert --help'.")
    if options.action not in ACTIONS:
        actions = [action for action in (*ACTIONS, *LIFECYCLE_ACTIONS) if action != "destroy"]
        raise ConfigError(
            f"{quoted_for_log(options.action)} is not an action of the CA",
            hint=did_you_mean(options.action, actions, form="puppet cert {}", otherwise=f"The actions are {', '.join(actions)}."),
        )
    options.check_options()
    return options


def cert(argv: Sequence[str], site: CaSite, *, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """
    Run `puppet cert …`; return the exit code. Blocks.

    Safe while a master runs: every change is made under the lock of the CA's directory, and the master sees it at once.
    """
    console = Console(out or sys.stdout, err or sys.stderr)
    if argv and argv[0] in LIFECYCLE_ACTIONS:
        return _report_errors(console, lambda: lifecycle.run(argv, site, console))
    try:
        options = parse(argv)
    except PuppetError as error:
        prefix = "Could not parse application options: "
        console.error(f"{prefix}{str(error).removeprefix(prefix)}", error.hint)
        return 1
    return carry_out(options, site, console)


def carry_out(options: CertOptions, site: CaSite, console: Console) -> int:
    """Carry out a command line; return the exit code, after printing an error. Blocks."""
    try:
        authority = _authority(site, make=makes_ca([options.action]))
    except PuppetError as error:
        console.error(f"Could not initialize the CA: {error}", error.hint)
        return NO_CA
    except OSError as error:
        _show_os_error(console, "Could not initialize the CA: ", error)
        return NO_CA
    return _report_errors(console, lambda: CertCommands(site, authority, console).run(options))


def _report_errors(console: Console, work: Callable[[], int]) -> int:
    """Return the result of `work`; if it raises, print the error and return FAILED."""
    try:
        return work()
    except PuppetError as error:
        console.error(error.legacy or str(error), error.hint)
    except OSError as error:
        _show_os_error(console, "", error)
    return FAILED


def _show_os_error(console: Console, prefix: str, error: OSError) -> None:
    hint = WHOSE_CA if isinstance(error, PermissionError) else ""
    if error.errno in NO_SPACE:
        hint = "Free some space on its file system, and run the command again."
    console.error(f"{prefix}{error.strerror}: {error.filename}" if error.filename else f"{prefix}{error.strerror or error}", hint)


def ca(argv: Sequence[str], site: CaSite) -> int:
    """Run `puppet ca …`, the face of 3.x: the same actions, 1 for a failure."""
    words = [{"destroy": "clean"}.get(word, word) if index == 0 else word for index, word in enumerate(argv)]
    return min(cert(words, site), 1)


def makes_ca(words: Sequence[str]) -> bool:
    """Return whether a command makes the CA where there is none; only `generate` does."""
    return "generate" in words[:1]


def _authority(site: CaSite, *, make: bool) -> CertificateAuthority:
    """Open the CA of this host; ConfigError when there is none and `make` does not say to make it."""
    if not site.ca:
        raise ConfigError("This host is not a CA: the setting ca is false", hint="Run it on the CA, or set ca = true.")
    now = site.now
    if not site.store.prepare():
        if not make:
            raise ConfigError(f"There is no CA in {site.store.place}", hint=f"{WHOSE_CA} A master makes it when it starts the first time.")
        bootstrap.create(site.store, site.ca_name, site.generate, site.rules, now=now, report=site.report)
    return bootstrap.open_authority(site.store, site.rules, now=now, report=site.report)


class CertCommands:
    """The actions, each printing its result; an error ends the rest."""

    def __init__(self, site: CaSite, authority: CertificateAuthority, console: Console) -> None:
        self.site = site
        self.authority = authority
        self.registry = CertificateRegistry(authority)
        self.console = console

    def run(self, options: CertOptions) -> int:
        if options.action == "list":
            return self.list(options)
        if options.action == "reinventory":
            self.console.notice(f"Wrote {self.registry.reinventory(by=self.site.by)} lines to {self.site.store.inventory_place}")
            return 0
        if options.action == "sign":
            return self.sign(options)
        names = options.names
        if options.all:
            names = [status.name for status in self.registry.statuses() if options.action == "fingerprint" or status.state == "signed"]
        if not names:
            raise ConfigError(f"No hosts to {options.action} specified", hint=f"puppet cert {options.action} NAME")
        if options.json:
            self.fingerprints_as_json(names, options)
            return 0
        action: Callable[[str, CertOptions], None] = getattr(
            self, {"print": "show", "destroy": "clean"}.get(options.action, options.action)
        )
        for name in names:
            action(name, options)
        return 0

    # --- list

    def list(self, options: CertOptions) -> int:
        """Print requests, and with --all or --signed certificates: glyph, quoted name, digest, alternative names, problem."""
        if options.json:
            return self._list_as_json(options)
        everything = options.all or options.signed or bool(options.names)
        lines: list[tuple[str, str, str, str]] = []
        unknown = set(options.names)
        for files in self.registry.store.all_names(only_requests=not everything):
            if options.names and files.name not in unknown:
                continue
            unknown.discard(files.name)
            lines += self._lines(files, options)
        if options.subject:
            lines = [line for line in lines if re.search(options.subject, line[1])]
        width = max((len(line[1]) for line in lines), default=0)
        for glyph, name, digest, rest in sorted(lines):
            self.console.show(" ".join(part for part in (glyph, name.ljust(width), digest, rest) if part))
        for name in sorted(unknown):
            self.console.error(f"Could not find a certificate or request for {quoted_for_log(name)}")
        return FAILED if unknown else 0

    def _list_as_json(self, options: CertOptions) -> int:
        """Print the same names by state, each as the CA's own endpoint describes it; `problem`: why a certificate is not valid."""
        states: dict[str, Any] = {"requested": [], "signed": [], "revoked": []}
        unknown = set(options.names)
        for status in self.registry.statuses():
            if (options.names and status.name not in unknown) or (options.subject and not re.search(options.subject, status.name)):
                continue
            unknown.discard(status.name)
            is_request = status.state == "requested"
            if options.signed if is_request else options.pending or not (options.all or options.signed or options.names):
                continue
            certificate = None if is_request else self.authority.signed_certificate(status.name)
            problem = self._problem(certificate) if certificate is not None else ""
            states[status.state].append(status.to_data(MODERN) | ({"problem": problem} if problem else {}))
        self.console.show(json.dumps({**states, "missing": sorted(unknown)}, indent=2))
        return FAILED if unknown else 0

    def _lines(self, files: NameFiles, options: CertOptions) -> Iterable[tuple[str, str, str, str]]:
        name = files.name
        quoted = f'"{quoted_for_log(name)[1:-1]}"'
        if not is_certname(name):
            yield " ", quoted, "", "(not a certname: it cannot be signed)"
            return
        facts = self.registry.facts_of(name, files.request)
        if facts is not None and not options.signed:
            yield " ", quoted, fingerprints.labelled(facts, options.digest), _alternative(name, facts.alternative_names)
        elif (options.all or options.signed or options.names) and not options.pending:
            certificate = self.authority.parse_certificate(name, files.certificate) if files.certificate is not None else None
            if certificate is None:
                return
            problem = self._problem(certificate)
            if problem and options.signed and not options.all:
                return
            rest = " ".join(
                part
                for part in (_alternative(name, certificates.alternative_names(certificate)), f"({problem})" if problem else "")
                if part
            )
            yield "-" if problem else "+", quoted, fingerprints.labelled(certificate, options.digest), rest

    def _problem(self, certificate: x509.Certificate) -> str:
        """Return why a certificate is not valid, in OpenSSL's words; '' when it is."""
        now = self.authority.now()
        if certificate.serial_number in self.authority.revoked() and self.authority.has_issued(certificate):
            return "certificate revoked"
        if not self.authority.has_issued(certificate):
            return "certificate signature failure"
        if now > certificate.not_valid_after_utc:
            return "certificate has expired"
        return "certificate is not yet valid" if now < certificate.not_valid_before_utc else ""

    # --- the others

    def sign(self, options: CertOptions) -> int:
        names = self.registry.pending() if options.all else options.names
        if not names:
            raise ConfigError("No waiting certificate requests to sign" if options.all else "No hosts to sign specified")
        failed = 0
        for name in names:
            try:
                self._sign(name, options)
            except PuppetError as err:
                if not options.all:
                    raise
                self.console.error(err.legacy or str(err), err.hint)
                failed = FAILED
        return failed

    def _sign(self, name: str, options: CertOptions) -> None:
        if not is_certname(name) or self.registry.request(name) is None:
            raise BadData(
                f"Could not find certificate request for {quoted_for_log(name)[1:-1]}", hint="'puppet cert list' lists pending requests."
            )
        is_own = name == self.site.ssldir.certname
        allowed = self.site.rules.policy
        names = is_own or (allowed.allow_alternative_names if options.allow_dns_alt_names is None else options.allow_dns_alt_names)
        self.registry.sign(name, by=self.site.by, policy_=SigningPolicy(names, allowed.allow_authorization_extensions))
        self.console.notice(f"Signed certificate request for {name}")
        self._report_removed("CertificateRequest", name, self.registry.store.request_place(name))

    def _report_removed(self, kind: str, name: str, path: object) -> None:
        self.console.notice(f"Removing file Puppet::SSL::{kind} {name} at '{path}'")

    def revoke(self, name: str, options: CertOptions) -> None:
        """Revoke every certificate of a name, or, by 0xSERIAL, that one."""
        if re.fullmatch(r"0x[0-9a-f]{1,40}", name):
            serials = [int(name, 16)]
            if not options.force and not self.registry.store.has_issued_serial(serials[0]):
                raise BadData(
                    f"Could not find a certificate with the serial {name} in the inventory",
                    hint="If the CA was restored from a back-up that lacks it, --force revokes it all the same.",
                )
            self.authority.revoke_serials(serials, by=self.site.by, name=name, force=options.force)
        else:
            if not self.authority.serials_of(valid_certname(name)):
                raise BadData(f"Could not find a serial number for {name}")
            serials = self.authority.revoke(name, by=self.site.by, force=options.force)
        for serial in serials:
            self.console.notice(f"Revoked certificate with serial {serial}")

    def clean(self, name: str, options: CertOptions) -> None:
        """Revoke, then remove certificate, request, and the files of the name in this host's ssldir."""
        valid_certname(name)
        store = self.registry.store
        if self.authority.serials_of(name):
            self.revoke(name, options)
        elif store.request(name) is None:
            raise BadData(f"Could not find a serial number for {name}")
        for kind in self.registry.delete(name, by=self.site.by):
            place = store.signed_place(name) if kind == "Puppet::SSL::Certificate" else store.request_place(name)
            self._report_removed(kind.removeprefix("Puppet::SSL::"), name, place)
        ssl = SslDir.at(self.site.ssldir.root, name)
        for kind, path in (("Certificate", ssl.hostcert), ("Key", ssl.hostprivkey), ("", ssl.hostpubkey)):
            if path.exists():
                path.unlink()
                if kind:
                    self._report_removed(kind, name, path)

    def generate(self, name: str, options: CertOptions) -> None:
        """Make a key in this host's ssldir and a certificate for it; nothing that exists is overwritten."""
        valid_certname(name)
        if self.registry.status(name) is not None:
            raise BadData(
                f"A certificate or request already exists for {name}", hint=f"Run 'puppet cert clean {name}' first to replace it."
            )
        ssl = SslDir.at(self.site.ssldir.root, name)
        ssl.create()
        key = ssl.key()
        if key is None:
            key = self.site.generate()
            ssl.save_key(key)
        names = options.alternative_names or (list(self.site.dns_alt_names) if name == self.site.ssldir.certname else [])
        request = csr.build(key, name, dns_alt_names=names)
        facts = csr.parse(bundles.dump([request]))
        self.console.notice(f"{name} has a waiting certificate request")
        certificate = self.authority.issue(
            name, request.public_key(), alternative_names=facts.alternative_names, by=self.site.by, action="generate"
        )
        self.console.notice(f"Signed certificate request for {name}")
        ssl.save_certificate(certificate)

    def show(self, name: str, options: CertOptions) -> None:
        self.console.out.write(certificate_text.certificate(self._certificate(name)))

    def fingerprint(self, name: str, options: CertOptions) -> None:
        self.console.show(f"{name} ({options.digest.upper()}) {self._digest(name, options)}")

    def fingerprints_as_json(self, names: Iterable[str], options: CertOptions) -> None:
        """Print the digests by name."""
        digests = {name: {"digest": options.digest.upper(), "fingerprint": self._digest(name, options)} for name in names}
        self.console.show(json.dumps(digests, indent=2))

    def _digest(self, name: str, options: CertOptions) -> str:
        request = self.registry.request(valid_certname(name))
        signed = csr.parse(request, max_bytes=len(request)) if request is not None else self._certificate(name)
        return fingerprints.fingerprint(signed, options.digest)

    def verify(self, name: str, options: CertOptions) -> None:
        problem = self._problem(self._certificate(name))
        if problem:
            raise BadData(f"Could not verify {name}: {problem}")

    def _certificate(self, name: str) -> x509.Certificate:
        if name == "ca":
            return self.authority.certificate
        certificate = self.authority.signed_certificate(valid_certname(name))
        if certificate is None:
            raise BadData(f"Could not find a certificate for {name}")
        return certificate


def _alternative(name: str, names: Sequence[str]) -> str:
    """Return `(alt names: "DNS:a", "DNS:b")`, '' when there is none but the name itself."""
    if not any(alternative != f"DNS:{name}" for alternative in names):
        return ""
    return f"(alt names: {', '.join(chr(34) + quoted_for_log(alternative, 300)[1:-1] + chr(34) for alternative in names)})"
