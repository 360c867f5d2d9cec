"""The CA against a model: any order of calls, failures in the middle and restarts keep the promises of the fault table."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from cryptography import x509
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from certs import crl
from shared.errors import PuppetError
from shared.failpoints import VARIABLE
from shared.state.database import StateDatabase
from tests.support.ca_site import DatabaseSite, Site, emptied, request_pem
from tests.support.examples import examples
from tests.support.postgresql import PostgresqlServer

NAMES = st.sampled_from(["a", "b", "c"])
POINTS = st.sampled_from(
    [
        "",
        "",
        "",
        "ca.serial-stored",
        "ca.inventory-written",
        "ca.certificate-written",
        "ca.request-removed",
        "ca.request-written",
        "ca.crl-written",
        "ca.certificate-removed",
        "ca.committed",
        "lost:ca.serial-stored",
        "lost:ca.certificate-written",
        "lost:ca.crl-written",
        "lost:ca.committed",
    ]
)


class CaModel(RuleBasedStateMachine):
    """The model: what was acknowledged. The CA may know more (an unacknowledged call that went through), never less."""

    def __init__(self) -> None:
        super().__init__()
        self.site = self.new_site()
        self.root = self.site.root
        self.site.create()
        self.registry = self.site.registry()
        self.released: dict[int, str] = {}  # serial: name, of every certificate that a caller got
        self.revoked: set[int] = set()  # acknowledged
        self.number = 0
        self.waiting: set[str] = set()  # requests that were acknowledged and not disposed of

    def new_site(self) -> Site:
        return Site(Path(tempfile.mkdtemp(prefix="bunraku-model-")))

    def teardown(self) -> None:
        os.environ.pop(VARIABLE, None)
        shutil.rmtree(self.root)

    def call(self, point: str, work: Callable[[], object]) -> object | None:
        """What `work` gives; None when it refused or fell over at `point`, after which the CA starts anew."""
        if point:
            os.environ[VARIABLE] = f"{point}=error"
        try:
            return work()
        except PuppetError as err:
            if str(err).startswith("failpoint"):
                self.restart()
            return None
        finally:
            os.environ.pop(VARIABLE, None)

    @rule()
    def restart(self) -> None:
        os.environ.pop(VARIABLE, None)
        self.registry = self.site.registry()
        self.registry.recover()

    @rule(name=NAMES, point=POINTS)
    def submit(self, name: str, point: str) -> None:
        if self.call(point, lambda: self.registry.submit(name, request_pem(name), by="t")) is not None:
            self.waiting.add(name)

    @rule(name=NAMES, point=POINTS)
    def sign(self, name: str, point: str) -> None:
        made = self.call(point, lambda: self.registry.sign(name, by="t"))
        if isinstance(made, x509.Certificate):
            assert made.serial_number not in self.released
            self.released[made.serial_number] = name

    @rule(name=NAMES, point=POINTS)
    def revoke(self, name: str, point: str) -> None:
        done = self.call(point, lambda: self.registry.authority.revoke(name, by="t"))
        if isinstance(done, list):
            self.revoked |= set(done)
            mine = {serial for serial, owner in self.released.items() if owner == name}
            assert mine <= self.registry.authority.revoked(), "a released certificate of a revoked name is still good"

    @rule(name=NAMES, point=POINTS)
    def clean(self, name: str, point: str) -> None:
        self.waiting.discard(name)
        if self.call(point, lambda: self.registry.clean([name], by="t")) is not None:
            assert self.registry.status(name) is None
            self.revoked |= {serial for serial, owner in self.released.items() if owner == name}

    @rule(name=NAMES, point=POINTS)
    def renew(self, name: str, point: str) -> None:
        held = self.registry.authority.signed_certificate(name)
        if held is None:
            return
        made = self.call(point, lambda: self.registry.authority.renew(held, by="t"))
        if isinstance(made, x509.Certificate):
            assert held.serial_number not in self.revoked
            assert made.serial_number not in self.released
            self.released[made.serial_number] = name

    @rule(days=st.integers(1, 700))
    def time_passes(self, days: int) -> None:
        self.site.clock.pass_(days=min(days, 30))
        self.registry.authority.refresh_crl_if_due()

    @invariant()
    def promises(self) -> None:
        authority = self.registry.authority
        records = authority.store.inventory().records
        serials = [record.serial for record in records]
        assert len(serials) == len(set(serials))
        assert max(serials) < authority.store.next_serial()
        assert self.released.items() <= {(record.serial, record.subject.removeprefix("/CN=")) for record in records}
        assert self.revoked <= authority.revoked()
        assert crl.number_of(authority.crl()) >= self.number
        self.number = crl.number_of(authority.crl())
        for name in self.waiting:
            assert self.registry.status(name) is not None, "an acknowledged request is lost"


class SharedCaModel(CaModel):
    """The same promises, by two masters on one database that hear of each other only when they look, and lose connections."""

    database: StateDatabase
    server: PostgresqlServer

    def __init__(self) -> None:
        super().__init__()
        self.site_of_other = self.site.second()
        self.other = self.site_of_other.registry()

    def new_site(self) -> DatabaseSite:
        return DatabaseSite(Path(tempfile.mkdtemp(prefix="bunraku-model-")), database=emptied(self.database))

    def call(self, point: str, work: Callable[[], object]) -> object | None:
        if not point.startswith("lost:"):
            return super().call(point, work)

        def lose(name: str) -> None:
            if f"lost:{name}" == point:
                self.server.end_sessions()

        with patch("ca.storage.database.failpoint", lose):
            return super().call("", work)

    @rule()
    def the_other_master_is_asked(self) -> None:
        self.site, self.site_of_other = self.site_of_other, self.site
        self.registry, self.other = self.other, self.registry

    @rule()
    def the_other_master_looks(self) -> None:
        self.other.store.refresh()

    @rule()
    def all_connections_are_lost(self) -> None:
        self.server.end_sessions()

    @invariant()
    def promises(self) -> None:
        self.registry.store.refresh()
        super().promises()
        assert self.site.files.cacrl.read_bytes() == self.registry.authority.crl_pem()


@pytest.mark.slow
class TestCaModel(CaModel.TestCase):
    settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_two_masters_keep_the_promises_of_one(ca_database: StateDatabase, postgresql: PostgresqlServer) -> None:
    SharedCaModel.database, SharedCaModel.server = ca_database, postgresql
    shorter = settings(max_examples=examples(25), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(SharedCaModel, settings=shorter)
