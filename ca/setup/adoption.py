"""Taking over a CA that another program made: checked as a whole first, then copied atomically."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509

from certs import certificates, crl, csr, keys, signatures, verify
from certs.files import bundles
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from certs.fingerprints import fingerprint
from certs.keys import PrivateKey
from shared.errors import BadData, ConfigError, Conflict, NotFound, PeerNotTrusted, PuppetError, TooLarge
from shared.failpoints import failpoint
from shared.filesystem.files import make_directory, open_beneath, sync_directory, write_atomic
from shared.names import is_certname, quoted_for_log

from ..authority import WARN_BEFORE
from ..storage import inventory
from ..storage.folder import NEWEST_CRLS
from ..storage.inventory import InventoryEntry
from ..storage.serials import SMALL_SERIAL
from ..storage.store import MAX_FILE, PRIVATE_MODE, PUBLIC_MODE

MAX_CA_FILE = 256 * 1024 * 1024  # bytes of an inventory or CRL: a million certificates are 100 MB
INFRASTRUCTURE = ("infra_inventory.txt", "infra_serials", "infra_crl.pem")
_SERVED = {"ca_crt.pem", "ca_key.pem", "ca_crl.pem", "ca_pub.pem", "serial", "inventory.txt", "requests", "signed", "private"}
_LOCKS = {"ca.lock", "master.lock"}
_ROLLOVER = "rollover"


@dataclass
class Adoption:
    """
    The contents of a CA's directory, and the changes that the copy makes.

    `odd` are sentences for the administrator: anomalies that do not stop the CA from working.
    """

    source: Path
    target: Path
    subject: str = ""
    fingerprint: str = ""
    not_after: str = ""
    chain: list[str] = field(default_factory=list)
    next_serial: int = 1
    issued: int = 0  # lines of the inventory
    revoked: int = 0
    signed: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    done: bool = False

    def to_data(self) -> dict[str, object]:
        """Return it as plain data, for --json."""
        return {
            "source": str(self.source),
            "cadir": str(self.target),
            "adopted": self.done,
            "ca": {"subject": self.subject, "fingerprint": self.fingerprint, "not_after": self.not_after, "chain": self.chain},
            "next_serial": self.next_serial,
            "issued": self.issued,
            "revoked": self.revoked,
            "signed": self.signed,
            "requests": self.requests,
            "files": self.files,
            "odd": self.odd,
        }


class Unfit(ConfigError):
    """A directory that cannot be taken over; `problems` has a sentence for each reason."""

    def __init__(self, source: Path, problems: list[str]) -> None:
        super().__init__(
            f"The CA in {source} cannot be adopted: {'; '.join(problems)}",
            hint="Nothing was changed. Restore the faulty files from a backup of that CA, and try again.",
        )
        self.problems = problems


def adopt(
    source: Path, files: CaFiles, *, now: datetime, ssldir: SslDir, noop: bool = False, owner: tuple[int, int] | None = None
) -> Adoption:
    """
    Copy the CA in `source` to the master's empty cadir, after checking that everything in it is consistent.

    The copy is made in a temporary folder and renamed: other programs see no CA or the whole one. `source` is unchanged.

    Args:
        ssldir: this host's own, whose certificate should be of that CA.
        noop: only check.
        owner: (uid, gid) of what is made; None: the caller's own.
    Raises:
        Unfit: what is wrong with it, all of it. Conflict: there is a CA here already. NotFound: there is none there.
        OSError: it cannot be read, or the copy cannot be written; nothing is left of it.
    """
    folder = _place_of(source)
    _check_free(folder, files.cadir)
    adoption = Adoption(folder, files.cadir)
    contents = _Reading(adoption, now).contents(ssldir)
    adoption.files = sorted(contents)
    if not noop:
        _copy(contents, files.cadir, owner)
        adoption.done = True
    return adoption


def _place_of(source: Path) -> Path:
    """Return the folder with the CA's certificate: `source`, or `ca` below it when an ssldir was named."""
    for folder in (source, source / "ca"):
        if (folder / "ca_crt.pem").exists() or (folder / "ca_key.pem").exists():
            return folder.resolve()
    raise NotFound(
        f"There is no CA in {source}: neither ca_crt.pem nor ca_key.pem",
        hint="Name the folder that has them: $ssldir/ca of Puppet up to 5, /etc/puppetlabs/puppetserver/ca since 7.",
    )


def _check_free(source: Path, cadir: Path) -> None:
    if cadir.exists() and cadir.resolve() == source:
        raise Conflict(f"{source} is this master's cadir already", hint="Start the master: it uses the CA that is there.")
    if not cadir.exists():
        return
    if cadir.is_symlink() or not cadir.is_dir():
        raise Conflict(f"{cadir} is not a directory of its own", hint="Remove the link, or set cadir to the CA's directory.")
    remaining = sorted(str(path.relative_to(cadir)) for path in cadir.rglob("*") if not (path.is_dir() or path.name in _LOCKS))
    if remaining:
        raise Conflict(
            f"There is something in {cadir} already: {', '.join(remaining[:5])}{' ...' if len(remaining) > 5 else ''}",
            hint="Nothing was changed. To discard that CA, stop the master, move it away, and try again.",
        )


class _Reading:
    """One reading of a CA's directory; all problems are collected, so that an administrator sees them at once."""

    def __init__(self, adoption: Adoption, now: datetime) -> None:
        self.found = adoption
        self.folder = adoption.source
        self.now = now
        self.problems: list[str] = []
        self.odd = adoption.odd
        self.taken: dict[str, tuple[bytes, int]] = {}

    def contents(self, ssldir: SslDir) -> dict[str, tuple[bytes, int]]:
        """Return the files of the copy: content and mode by their path below the cadir. Unfit when there are problems."""
        if (self.folder / _ROLLOVER).exists():
            raise Unfit(self.folder, ["it is in the middle of a roll-over: finish that first, where it was started"])
        key, bundle = self._key(), self._bundle()
        own = self._own(key, bundle) if key is not None and bundle else None
        if own is None or key is None:
            raise Unfit(self.folder, self.problems)
        self._dates(own, bundle)
        revoked = self._crls(own, bundle)
        signed = self._signed(own)
        records = self._inventory(own, signed)
        self._serial({record.serial for record in records} | {each.serial_number for each in signed} | revoked)
        self._requests()
        self._others()
        self._host(own, ssldir)
        if self.problems:
            raise Unfit(self.folder, self.problems)
        self.taken.setdefault("ca_pub.pem", (keys.public_pem(key.public_key()), PUBLIC_MODE))
        return self.taken

    # --- files

    def _read(self, name: str, *, limit: int = MAX_CA_FILE) -> bytes | None:
        try:
            with open_beneath(self.folder, name) as file:
                content = file.read(limit + 1)
        except NotFound as err:
            if isinstance(err.__cause__, PermissionError):
                raise err.__cause__ from None
            return None
        if len(content) > limit:
            self.problems.append(f"{name} is larger than {limit} bytes")
            return None
        return content

    def _take(self, name: str, content: bytes, *, mode: int = PUBLIC_MODE) -> None:
        self.taken[name] = (content, mode)

    def _needed(self, name: str) -> bytes | None:
        content = self._read(name)
        if content is None:
            self.problems.append(f"{name} is missing")
        return content

    @contextmanager
    def _as_problem(self, name: str) -> Iterator[None]:
        """Make an error in a file's content one of the problems."""
        try:
            yield
        except (BadData, TooLarge) as err:
            self.problems.append(f"{name}: {err.message}")

    # --- the authority

    def _key(self) -> PrivateKey | None:
        pem, password = self._needed("ca_key.pem"), self._read("private/ca.pass", limit=1024)
        for name in ("ca_key.pem", "private/ca.pass", "root_key.pem"):
            path = self.folder / name
            if path.exists() and path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
                self.odd.append(f"{name} is open to everyone on this machine; the copy is not. Others may have copied it.")
        if pem is None:
            return None
        self._take("ca_key.pem", pem, mode=PRIVATE_MODE)
        if password is not None:
            self._take("private/ca.pass", password, mode=PRIVATE_MODE)
        with self._as_problem("ca_key.pem"):
            key = keys.private_key(pem, (password or b"").strip() or None, what="it")
            weakness = keys.strength(key.public_key()).weakness
            if weakness:
                self.odd.append(f"The CA's key is weak: {weakness}. Replace it: puppet cert rollover.")
            return key
        return None

    def _bundle(self) -> tuple[x509.Certificate, ...]:
        pem = self._needed("ca_crt.pem")
        if pem is None:
            return ()
        self._take("ca_crt.pem", pem)
        with self._as_problem("ca_crt.pem"):
            return bundles.certificates(pem)
        return ()

    def _own(self, key: PrivateKey, bundle: tuple[x509.Certificate, ...]) -> x509.Certificate | None:
        own = next((each for each in bundle if keys.belongs(key, each.public_key())), None)
        if own is None:
            self.problems.append("ca_key.pem is not the key of a certificate in ca_crt.pem")
            return None
        if own != bundle[0]:
            self.odd.append("The certificate that signs is not the first one in ca_crt.pem; agents get it first all the same")
        try:
            verify.verify_bundle(bundle)
            chain = verify.verify(own, verify.TrustStore(bundle, revocation=False), now=own.not_valid_before_utc)
        except PeerNotTrusted as err:
            # At the beginning of its own time, so that dates are not what fails here: they are looked at by themselves.
            self.problems.append(f"ca_crt.pem: {err.message}")
            return None
        strangers = [verify.subject_of(each) for each in bundle if each not in chain]
        if strangers:
            self.odd.append(f"ca_crt.pem also has certificates that are not in the chain of the one that signs: {', '.join(strangers)}")
        self.found.subject = verify.subject_of(own)
        self.found.fingerprint = fingerprint(own)
        self.found.not_after = certificates.time_text(own.not_valid_after_utc)
        self.found.chain = [verify.subject_of(each) for each in chain]
        return own

    def _dates(self, own: x509.Certificate, bundle: tuple[x509.Certificate, ...]) -> None:
        for each in bundle:
            name, end = verify.subject_of(each), certificates.time_text(each.not_valid_after_utc)
            if each.not_valid_before_utc > self.now:
                self.problems.append(f"the certificate '{name}' is not valid before {certificates.time_text(each.not_valid_before_utc)}")
            elif each.not_valid_after_utc <= self.now:
                self.problems.append(f"the certificate '{name}' expired on {end}")
            elif each.not_valid_after_utc <= self.now + WARN_BEFORE:
                self.odd.append(f"The certificate '{name}' expires on {end}. All certificates expire with it: see puppet cert rollover.")

    def _crls(self, own: x509.Certificate, bundle: tuple[x509.Certificate, ...]) -> frozenset[int]:
        """Check each CRL's signature, and that one is our own; return the revoked serials."""
        pem = self._needed("ca_crl.pem")
        if pem is None:
            return frozenset()
        self._take("ca_crl.pem", pem)
        genuine: list[x509.CertificateRevocationList] = []
        with self._as_problem("ca_crl.pem"):
            for each in bundles.revocation_lists(pem, max_bytes=MAX_CA_FILE):
                name = each.issuer.rfc4514_string()
                if all(c.subject != each.issuer for c in bundle):
                    self.odd.append(f"ca_crl.pem has a CRL of '{name}', which is no authority of this CA; it has no effect")
                elif not any(signatures.crl_is_genuine(each, c) for c in bundle):
                    self.problems.append(f"the CRL of '{name}' is not signed by its certificate")
                else:
                    genuine.append(each)
            for issuer in dict.fromkeys(c.subject.rfc4514_string() for c in bundle):
                lists = [each for each in genuine if each.issuer.rfc4514_string() == issuer]
                self._crl_of(issuer, lists, own=issuer == own.subject.rfc4514_string())
        ours = [each for each in genuine if each.issuer == own.subject]
        revoked = crl.serials(max(ours, key=crl.number_of)) if ours else frozenset()
        self.found.revoked = len(revoked)
        return revoked

    def _crl_of(self, issuer: str, lists: list[x509.CertificateRevocationList], *, own: bool) -> None:
        if not lists:
            if own:
                self.problems.append("ca_crl.pem has no CRL of the certificate that signs")
            else:
                self.odd.append(f"ca_crl.pem has no CRL of '{issuer}': only agents' own certificates are checked for revocation")
            return
        end = max((each.next_update_utc for each in lists if each.next_update_utc is not None), default=None)
        if end is None or end > self.now:
            return
        text = f"the CRL of '{issuer}' ended on {certificates.time_text(end)}"
        if own:
            self.odd.append(f"T{text[1:]}; the master signs it again when it starts")
        else:
            self.problems.append(f"{text}, and agents accept nothing without a current one: get a newer one from that authority")

    # --- what it has issued

    def _signed(self, own: x509.Certificate) -> list[x509.Certificate]:
        """
        Return the certificates in signed/ that this CA issued; files that are not certificates, or not named after a certname, are not
        copied.
        """
        found: dict[int, str] = {}
        kept = []
        for name, content in self._folder("signed"):
            try:
                certificate = bundles.certificate(content)
            except (BadData, TooLarge) as err:
                self.odd.append(f"signed/{quoted_for_log(name)[1:-1]}.pem is left behind: {err.message}")
                continue
            if certificates.name_of(certificate) != name:
                self.odd.append(f"signed/{name}.pem is for another name: {quoted_for_log(certificates.name_of(certificate))}")
            self._take(f"signed/{name}.pem", content)
            self.found.signed.append(name)
            if not signatures.issued(certificate, own):
                self.odd.append(f"signed/{name}.pem was not issued by this CA; its holder is refused")
                continue
            other = found.setdefault(certificate.serial_number, name)
            if other != name:
                self.odd.append(f"{other} and {name} have the same serial {certificate.serial_number:#06x}: revoking one revokes both")
            kept.append(certificate)
        return kept

    def _folder(self, folder: str) -> Iterator[tuple[str, bytes]]:
        path = self.folder / folder
        if not path.is_dir():
            self.odd.append(f"There is no folder {folder}/")
            return
        for entry in sorted(path.iterdir()):
            name = entry.name.removesuffix(".pem")
            content = self._read(f"{folder}/{entry.name}", limit=MAX_FILE) if entry.name.endswith(".pem") else None
            if not content or not is_certname(name):
                self.odd.append(f"{folder}/{quoted_for_log(entry.name)[1:-1]} is left behind: it is not the file of a certname")
                continue
            yield name, content

    def _inventory(self, own: x509.Certificate, signed: list[x509.Certificate]) -> list[InventoryEntry]:
        raw = self._read("inventory.txt")
        if raw is None:
            self.odd.append("There is no inventory.txt; the copy's is made from signed/. What was cleaned or replaced is not in it.")
            raw = b""
        text = raw.decode("utf-8", "replace")
        known = list(inventory.inventory_entries(text))
        torn = sum(1 for line in text.splitlines() if line.strip()) - len(known)
        if torn:
            self.odd.append(f"inventory.txt has {torn} malformed lines; they are copied, and have no effect")
        serials = {record.serial for record in known}
        issued = sorted((c for c in signed if c.serial_number not in serials), key=lambda each: each.serial_number)
        if not serials and own.issuer == own.subject:
            issued.insert(0, own)
        missing = [InventoryEntry.of(c) for c in issued]
        if missing and known:
            listed = ", ".join(record.name for record in missing[:5])
            self.odd.append(f"{len(missing)} certificates of signed/ are not in inventory.txt and are added to it: {listed}")
        start = raw if not raw or raw.endswith(b"\n") else raw + b"\n"
        self._take("inventory.txt", start + "".join(map(str, missing)).encode())
        self.found.issued = len(known) + len(missing)
        return known + missing

    def _serial(self, known: set[int]) -> None:
        """Return a next serial beyond every one that is known; random ones, of imported certificates, do not count."""
        least = 1 + max((serial for serial in known if serial < SMALL_SERIAL), default=0)
        raw = self._read("serial", limit=1024)
        if raw is None:
            self.odd.append(f"There is no serial file; the copy's is {least:04X}, one more than the highest known serial")
            self.found.next_serial = least
            self._take("serial", f"{least:04X}".encode())
            return
        text = raw.decode("ascii", "replace").strip()
        try:
            number = int(text, 16)
        except ValueError:
            number = 0
        if number < 1:
            self.problems.append(f"serial holds {quoted_for_log(text)}, which is not a number in hex")
            return
        if number < least:
            self.odd.append(f"serial is {number:04X}, but {least - 1:04X} was issued already; the copy has {least:04X}")
            raw = f"{least:04X}".encode()
        self.found.next_serial = max(number, least)
        self._take("serial", raw)

    def _requests(self) -> None:
        for name, content in self._folder("requests"):
            try:
                csr.parse(content, max_bytes=MAX_FILE)
            except PuppetError as err:
                self.odd.append(f"requests/{name}.pem is left behind: {err.message}")
                continue
            self._take(f"requests/{name}.pem", content)
            self.found.requests.append(name)

    def _others(self) -> None:
        copies = [path.name for path in self.folder.glob(NEWEST_CRLS)]  # of a CA that was ours
        for name in (*INFRASTRUCTURE, "ca_pub.pem", *copies):
            content = self._read(name)
            if content is not None:
                self._take(name, content)
        if "infra_crl.pem" in self.taken:
            self.odd.append("infra_inventory.txt, infra_serials and infra_crl.pem are copied, but not used: agents get the whole CRL")
        root = self._read("root_key.pem", limit=MAX_FILE)
        if root is not None:
            self._take("root_key.pem", root, mode=PRIVATE_MODE)
            self.odd.append("root_key.pem, the root's own key, is not needed to run the CA: store it in a safe place, not here")
        left_behind = sorted(
            p.name for p in self.folder.iterdir() if p.name not in {*_SERVED, *_LOCKS, *INFRASTRUCTURE, *copies, "root_key.pem"}
        )
        if left_behind:
            self.odd.append(
                f"Left behind, since a CA does not use it: {', '.join(quoted_for_log(name)[1:-1] for name in left_behind[:20])}"
            )

    def _host(self, own: x509.Certificate, ssldir: SslDir) -> None:
        """Return this host's certificate, which the master uses."""
        try:
            certificate = ssldir.certificate()
        except BadData as err:
            self.odd.append(err.message)
            return
        if certificate is not None and not signatures.issued(certificate, own):
            self.odd.append(
                f"This host's certificate {ssldir.hostcert} is of another CA: move it and its key away, and the master gets a new one"
            )
        elif ssldir.certname in self.found.signed and not ssldir.hostprivkey.exists():
            self.odd.append(
                f"This host, {ssldir.certname}, has a certificate of this CA, but not its key {ssldir.hostprivkey}: copy that from where "
                f"the CA was, or run 'puppet cert clean --force {ssldir.certname}' before the master starts, which then gets a new one"
            )


def _copy(contents: dict[str, tuple[bytes, int]], cadir: Path, owner: tuple[int, int] | None) -> None:
    """Write all files into a temporary folder, which then replaces `cadir` atomically."""
    make_directory(cadir.parent)
    staging = cadir.parent / f".{cadir.name}.{secrets.token_hex(8)}.adopting"
    staging.mkdir(mode=0o700)
    try:
        for folder in ("requests", "signed", "private"):
            (staging / folder).mkdir(mode=0o750 if folder == "private" else 0o755)
        for name, (content, mode) in contents.items():
            write_atomic(staging / name, content, mode=mode, owner=owner)
        failpoint("ca.adoption-staged")
        for path in (staging / "requests", staging / "signed", staging / "private", staging):
            if owner is not None:
                os.chown(path, *owner, follow_symlinks=False)
        staging.chmod(0o750)
        _clear(cadir)
        staging.rename(cadir)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    sync_directory(cadir.parent)


def _clear(cadir: Path) -> None:
    """Remove empty folders and locks, so that the new folder can take the place; anything else was refused before."""
    if not cadir.exists():
        return
    for path in sorted(cadir.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
