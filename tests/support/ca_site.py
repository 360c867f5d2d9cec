"""CAs in temporary directories; keys are EC and made once, since making them is what is slow."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from sqlalchemy import Connection, delete

from ca.authority import CaOptions, CertificateAuthority
from ca.autosign import Autosign
from ca.registry import CertificateRegistry
from ca.service import CaService
from ca.setup import bootstrap
from ca.setup.rollover import Rollover
from ca.storage.database import DatabaseStore
from ca.storage.folder import FolderStore
from ca.storage.store import CaStore
from certs import csr
from certs.files.bundles import dump
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from certs.keys import KeyKind, PrivateKey
from shared.errors import BadRequest, PuppetError
from shared.state.database import LIMITS, StateDatabase
from shared.state.tables import CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED
from tests.support.postgresql import PostgresqlServer

DATABASE = "CA_SITE_DATABASE"  # of the environment: the address for `DatabaseSite` in a child
START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
_keys = [KeyKind("ec").generate() for _ in range(4)]
_next_key = itertools.cycle(_keys)
KEY = _keys[0]


def key() -> PrivateKey:
    """One of four keys, in turn."""
    return next(_next_key)


def request_pem(name: str, *, with_key: PrivateKey | None = None, **rest: object) -> bytes:
    return dump([csr.build(with_key or key(), name, **rest)])  # type: ignore[arg-type]


def request(subject: x509.Name | str, *extensions: x509.ExtensionType, key: PrivateKey = KEY, critical: bool = False) -> bytes:
    """A request whose subject and extensions may be anything."""
    name = csr.common_name(subject) if isinstance(subject, str) else subject
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    for extension in extensions:
        builder = builder.add_extension(extension, critical)
    return dump([builder.sign(key, SHA256())])  # type: ignore[arg-type]


def refused(site: Site, name: str, pem: bytes, match: str = "", error: type[PuppetError] = BadRequest) -> PuppetError:
    """The refusal of a submission; nothing at all has changed on disk."""
    registry = site.registry()
    before = site.snapshot()
    with pytest.raises(error, match=match or None) as found:
        registry.submit(name, pem, by="10.0.0.66")
    assert found.value.status == error.status
    assert site.snapshot() == before
    assert len(str(found.value)) < 600
    said = json.dumps(site.trail[-1])
    assert "refused" in said
    assert "10.0.0.66" in said
    assert "\\u001b" not in said
    return found.value


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@dataclass
class Site:
    """A CA's directory and what opens it."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    rules: CaOptions = field(default_factory=lambda: CaOptions(master="master.example.com"))
    trail: list[dict[str, object]] = field(default_factory=list)
    address: str = ""  # of the database, for `in_child`; a CA in files has none

    @property
    def files(self) -> CaFiles:
        return CaFiles.at(self.root / "ssl" / "ca")

    @property
    def ssldir(self) -> SslDir:
        return SslDir.at(self.root / "ssl", "master.example.com")

    def store(self) -> CaStore:
        return FolderStore(self.files)

    def create(self) -> CertificateAuthority:
        bootstrap.create(self.store(), "Puppet CA: master.example.com", key, self.rules, now=self.clock, report=self.trail.append)
        return self.open()

    def open(self, **rules: object) -> CertificateAuthority:
        self.rules = replace(self.rules, **rules)  # type: ignore[arg-type]
        return bootstrap.open_authority(self.store(), self.rules, now=self.clock, report=self.trail.append)

    def registry(self, **rules: object) -> CertificateRegistry:
        return CertificateRegistry(self.open(**rules) if self.store().prepare() else self.create())

    def service(self, autosign: bool | Path = False, **rules: object) -> CaService:
        return CaService(self.registry(**rules).authority, Autosign(autosign))

    def bootstrap(self, **rest: object) -> CertificateAuthority:
        """What a master does when it starts."""
        return bootstrap.bootstrap(
            self.store(),
            self.rules,
            self.ssldir,
            ca_name="Puppet CA: master.example.com",
            generate=key,
            now=self.clock,
            report=self.trail.append,
            **rest,  # type: ignore[arg-type]
        )

    def in_child(self, *command: str, failpoints: str = "") -> subprocess.CompletedProcess[str]:
        """One of `COMMANDS` in a process of its own, which a failpoint may kill (return code -9)."""
        child = self.start_child(*command, failpoints=failpoints)
        out, err = child.communicate(timeout=60)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def start_child(self, *command: str, failpoints: str = "") -> subprocess.Popen[str]:
        """Start one of `COMMANDS` in a process of its own."""
        environ = {**os.environ, "BUNRAKU_FAILPOINTS": failpoints, DATABASE: self.address}
        argv = [sys.executable, "-m", "tests.support.ca_site", str(self.root), *command]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=environ, text=True, cwd=Path(__file__).parents[2], stdout=pipe, stderr=pipe)

    def snapshot(self) -> dict[str, bytes]:
        """All files below the root, but for locks."""
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file() and p.suffix != ".lock"}


@dataclass
class DatabaseSite(Site):
    """The same CA in a database; each `master` has a folder of its own, which begins as a copy of the first one's key."""

    database: StateDatabase = field(kw_only=True)
    master: str = "master.example.com"
    password: bytes | None = None

    @property
    def ssldir(self) -> SslDir:
        return SslDir.at(self.root / "ssl", self.master)

    def store(self) -> CaStore:
        return DatabaseStore(self.files, self.database, self.master, self.password)

    def open(self, **rules: object) -> CertificateAuthority:
        self.rules = replace(self.rules, **rules)  # type: ignore[arg-type]
        store = self.store()
        store.prepare()
        return bootstrap.open_authority(store, self.rules, now=self.clock, report=self.trail.append)

    def second(self, master: str = "master2.example.com") -> DatabaseSite:
        """Another master of the same CA."""
        root = self.root / master
        (root / "ssl" / "ca").mkdir(parents=True)
        other = replace(self, root=root, master=master, trail=[], rules=replace(self.rules, master=master))
        shutil.copy(self.files.cakey, other.files.cakey)
        return other


@pytest.fixture(scope="session")
def ca_database(postgresql: PostgresqlServer) -> Iterator[StateDatabase]:
    """A database for CAs, with all tables."""
    postgresql.run_sql("CREATE DATABASE ca")
    database = StateDatabase.open(postgresql.address("ca"), replace(LIMITS, writers=8))
    yield database
    asyncio.run(database.close())


def emptied(database: StateDatabase) -> StateDatabase:
    """The database without any CA."""

    def empty(connection: Connection) -> None:
        for table in (CA, CA_INVENTORY, CA_REQUESTS, CA_SIGNED):
            connection.execute(delete(table))

    database.transact(empty)
    return database


@pytest.fixture
def database_site(tmp_path: Path, postgresql: PostgresqlServer, ca_database: StateDatabase) -> DatabaseSite:
    made = DatabaseSite(tmp_path, database=emptied(ca_database), address=postgresql.address("ca"))
    made.create()
    return made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.create()
    yield made


@pytest.fixture
def empty_site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def pem() -> Callable[..., bytes]:
    return request_pem


@pytest.fixture
def new_key() -> Callable[[], PrivateKey]:
    return key


def _many(site: Site, prefix: str, count: str) -> None:
    """Submit and sign `count` names, with requests that were made before."""
    registry = site.registry()
    for number in range(int(count)):
        name = f"{prefix}{number}"
        registry.submit(name, request_pem(name), by="child")
        registry.sign(name, by="child")
        print(name, flush=True)


def _as_nobody(site: Site) -> None:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    site.bootstrap()


def _roll_over(site: Site, step: str) -> None:
    rollover = Rollover(site.open(), site.ssldir)
    {"start": lambda: rollover.start(key), "switch": lambda: rollover.switch(at_once=True), "finish": rollover.finish}[step]()


COMMANDS: dict[str, Callable[..., object]] = {
    "bootstrap": lambda site: site.bootstrap(),
    "bootstrap_as_nobody": _as_nobody,
    "submit": lambda site, name: site.registry().submit(name, request_pem(name), by="child"),
    "sign": lambda site, name: site.registry().sign(name, by="child"),
    "revoke": lambda site, name: site.registry().authority.revoke(name, by="child"),
    "clean": lambda site, name: site.registry().clean([name], by="child"),
    "refresh": lambda site: site.open().refresh_crl_if_due(),
    "many": _many,
    "rollover": _roll_over,
}

if __name__ == "__main__":
    address, (root, action, *arguments) = os.environ.get(DATABASE), sys.argv[1:]
    in_child = DatabaseSite(Path(root), database=StateDatabase.open(address)) if address else Site(Path(root))
    COMMANDS[action](in_child, *arguments)
