"""The CA's rows of the fault table: killed at any point, side by side with others, on a full disk, years later."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from ca.storage import inventory
from ca.tasks import CHANGE_CA
from certs import crl, keys
from certs.files import bundles
from shared.errors import BadRequest, ConfigError, Conflict, Denied, OutOfSpace, PuppetError, Unavailable
from tests.support.ca_site import Site
from tests.support.choices import in_gate
from tests.support.needs import needs_root

SIGNING = ["ca.serial-stored", "ca.inventory-written", "ca.certificate-written", "ca.request-removed"]


def check_invariants(site) -> None:
    """What holds after any crash and restart: serials are used once, everything issued is on record, files are whole."""
    authority = site.open()
    records = authority.store.inventory().records
    serials = [record.serial for record in records]
    assert len(serials) == len(set(serials)), "a serial was used twice"
    assert max(serials) < authority.store.next_serial(), "the next serial is one that was used"
    for name in authority.store.signed_names():
        issued = authority.signed_certificate(name)
        assert issued is not None, f"{name} is torn"
        assert any(r.serial == issued.serial_number and r.name == name for r in records), f"{name} is not on record"
    assert crl.number_of(authority.crl()) >= 0


@pytest.mark.slow
@pytest.mark.parametrize("point", SIGNING)
def test_R_01_killed_while_signing_loses_nothing_and_repeats_no_serial(site, pem, point: str) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    assert site.in_child("sign", "web1", failpoints=f"{point}=kill").returncode == -9
    again = site.registry()
    again.recover()
    check_invariants(site)
    status = again.status("web1")
    assert status is not None, "the request is lost"
    if status.state == "requested":
        again.sign("web1", by="t")
    assert again.status("web1").state == "signed"
    assert again.store.request("web1") is None
    on_record = {record.serial for record in again.store.inventory().records if record.name == "web1"}
    assert set(again.authority.revoke("web1", by="t")) == on_record
    assert on_record <= again.authority.revoked()
    check_invariants(site)


@pytest.mark.slow
def test_R_01_killed_while_a_request_is_stored_it_is_there_or_not(site) -> None:
    assert site.in_child("submit", "web1", failpoints="ca.request-written=kill").returncode == -9
    assert site.registry().status("web1").state == "requested"


@pytest.mark.slow
def test_R_01_killed_while_revoking_the_revocation_stands_and_can_be_repeated(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    registry.sign("web1", by="t")
    assert site.in_child("clean", "web1", failpoints="ca.crl-written=kill").returncode == -9
    again = site.registry()
    assert again.authority.revoked() == {2}
    assert again.status("web1").state == "revoked"
    assert again.clean(["web1"], by="t") == []
    assert (again.authority.revoked(), again.status("web1")) == ({2}, None)
    assert crl.number_of(again.authority.crl()) == 1


BOOTSTRAPPING = [
    "ca.bootstrap-key-made",
    "ca.bootstrap-staged-cakey",
    "ca.bootstrap-staged-cert_inventory",
    "ca.bootstrap-staged",
    "ca.bootstrap-moved-cakey",
    "ca.bootstrap-moved-cacert",
    "ca.bootstrap-moved-serial",
    "ca.bootstrap-moved-cacrl",
    "ca.bootstrap-done",
    "master.key-written",
    "ca.inventory-written",
    "ca.certificate-written",
    "master.certificate-issued",
    "master.certificate-written",
]


@pytest.mark.slow
@pytest.mark.parametrize("point", in_gate(BOOTSTRAPPING, BOOTSTRAPPING[::3]))
def test_R_01_killed_on_the_first_start_the_second_one_finishes(empty_site, point: str) -> None:
    assert empty_site.in_child("bootstrap", failpoints=f"{point}=kill").returncode == -9
    authority = empty_site.bootstrap()
    check_invariants(empty_site)
    assert not empty_site.files.staging.exists()
    own = empty_site.ssldir.certificate()
    assert keys.belongs(empty_site.ssldir.key(), own.public_key())
    assert own == authority.signed_certificate("master.example.com")
    before = empty_site.snapshot()
    empty_site.bootstrap()
    assert empty_site.snapshot() == before


@pytest.mark.slow
async def test_R_03_parallel_signing_uses_each_serial_once_and_loses_no_request(site, pem) -> None:
    """200 callers of one master, and two other processes on the same directory."""
    ca = site.service(autosign=True)
    children = [
        subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-m", "tests.support.ca_site", str(site.root), "many", prefix, "20"], cwd=Path(__file__).parents[2]
        )
        for prefix in ("x", "y")
    ]
    try:
        wanted = [(f"n{number}", pem(f"n{number}")) for number in range(200)]
        await asyncio.gather(*(ca.submit_request(name, text) for name, text in wanted))
        for child in children:
            assert await asyncio.to_thread(child.wait, 60) == 0
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
    check_invariants(site)
    statuses = await ca.statuses()
    assert len(statuses) == 240
    assert {status.state for status in statuses} == {"signed"}
    assert len({status.serial_number for status in statuses}) == 240
    assert len(site.files.cert_inventory.read_text().splitlines()) == 241
    await ca.close()


@pytest.mark.slow
async def test_R_04_no_revocation_is_lost_and_no_reader_sees_an_older_list(site, pem) -> None:
    ca = site.service(autosign=True)
    names = [f"n{number}" for number in range(60)]
    for name in names:
        await ca.submit_request(name, pem(name))
    stop = asyncio.Event()
    seen: list[int] = []

    async def read() -> None:
        last = -1
        while not stop.is_set():
            number = crl.number_of(bundles.revocation_lists(await ca.crl())[0])
            assert number >= last
            last = number
            seen.append(number)
            await asyncio.sleep(0)

    acked: set[int] = set()

    async def revoke(name: str) -> None:
        acked.update(await ca.set_state(name, "revoked"))

    async def sign(number: int) -> None:
        await ca.submit_request(f"m{number}", pem(f"m{number}"))

    readers = [asyncio.create_task(read()) for _ in range(5)]
    await asyncio.gather(*(revoke(name) for name in names), *(sign(number) for number in range(60)))
    stop.set()
    await asyncio.gather(*readers)
    assert acked <= ca.authority.revoked()
    assert len(acked) == 60
    assert crl.number_of(ca.authority.crl()) == 60
    assert seen
    await ca.close()


POINTS = [*SIGNING, "ca.request-written", "ca.crl-written", "ca.certificate-removed"]


@pytest.mark.parametrize("point", POINTS)
async def test_R_05_a_full_disk_is_507_leaves_old_files_whole_and_passes(site, pem, monkeypatch, point: str) -> None:
    ca = site.service()
    await ca.submit_request("old", pem("old"))
    await ca.set_state("old", "signed")
    await ca.submit_request("web1", pem("web1"))
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", f"{point}=enospc")
    for work in (lambda: ca.submit_request("web2", pem("web2")), lambda: ca.set_state("web1", "signed"), lambda: ca.clean(["old"])):
        try:
            await work()
        except OutOfSpace as err:
            assert err.status == 507
        except Conflict:
            pass  # a part of it was done before
    assert await ca.status("web1") is not None  # reading goes on
    monkeypatch.delenv("BUNRAKU_FAILPOINTS")
    assert not list(site.files.cadir.rglob("*.tmp"))
    check_invariants(site)
    await ca.submit_request("web3", pem("web3"))
    await ca.set_state("web3", "signed")
    assert (await ca.status("web3")).state == "signed"
    await ca.close()


@pytest.mark.parametrize("call", ["write", "rename", "fsync"])
async def test_R_05_each_call_of_the_system_may_fail(site, pem, monkeypatch, call: str) -> None:
    """The N-th write, rename or sync fails, for N from 1 until nothing fails any more."""
    import errno

    ca = site.service()
    real = getattr(os, call)
    for nth in range(1, 40):
        name = f"n{call}{nth}"
        text = pem(name)
        counter = [0]

        def failing(*args, nth=nth, counter=counter, **rest):
            counter[0] += 1
            if counter[0] == nth:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **rest)

        monkeypatch.setattr(os, call, failing)
        failed = False
        try:
            await ca.submit_request(name, text)
            await ca.set_state(name, "signed")
            await ca.set_state(name, "revoked")
        except PuppetError:
            failed = True
        finally:
            monkeypatch.setattr(os, call, real)
        assert not list(site.files.cadir.rglob("*.tmp"))
        check_invariants(site)
        if not failed:
            break
    else:
        pytest.fail("it never went through")
    assert nth > 3
    await ca.close()


def test_R_06_litter_is_reported_and_never_listed_signed_or_served(site, pem) -> None:
    files = site.files
    good = pem("web1")
    litter = {
        files.csrdir / ".web2.pem.0123456789abcdef.tmp": good,
        files.csrdir / "half.pem": good[: len(good) // 2],
        files.csrdir / "empty.pem": b"",
        files.signeddir / "torn.pem": b"-----BEGIN CERTIFICATE-----\nMIIB",
        files.signeddir / "none.pem": b"",
        files.cadir / ".ca_crl.pem.0123456789abcdef.tmp": b"x",
    }
    for path, content in litter.items():
        path.write_bytes(content)
    registry = site.registry()
    said = "\n".join(registry.recover())
    for name in ("web2", "empty.pem", "none.pem", ".ca_crl.pem"):
        assert name in said
    assert registry.statuses() == []
    for name in ("half", "empty", "torn", "none"):
        assert (registry.status(name), registry.request(name), registry.authority.signed_certificate(name)) == (None, None, None)
        with pytest.raises(Conflict):
            registry.sign(name, by="t")


def test_R_07_an_idle_ca_signs_its_list_again_in_time_and_also_after_it(site) -> None:
    authority = site.open()
    end = authority.crl().next_update_utc
    site.clock.now = end - timedelta(days=31)
    assert not authority.refresh_crl_if_due()
    site.clock.now = end - timedelta(days=29)
    assert authority.refresh_crl_if_due()
    assert not authority.refresh_crl_if_due()
    assert crl.number_of(authority.crl()) == 1
    site.clock.now = authority.crl().next_update_utc + timedelta(days=1)
    site.rules = type(site.rules)(master="master.example.com")
    restarted = site.open()
    assert restarted.refresh_crl_if_due()
    assert restarted.crl().next_update_utc > site.clock.now


def test_R_08_a_leaf_never_outlives_its_issuer_and_the_end_is_warned_of(site, pem) -> None:
    site.clock.now = site.open().certificate.not_valid_after_utc - timedelta(days=89)
    registry = site.registry()
    assert "expires on 2031-11-20" in registry.authority.warnings()[0]
    registry.submit("web1", pem("web1"), by="t")
    assert registry.sign("web1", by="t").not_valid_after_utc == registry.authority.certificate.not_valid_after_utc
    site.clock.pass_(days=90)
    registry.submit("web2", pem("web2"), by="t")
    with pytest.raises(Conflict, match="expired"):
        registry.sign("web2", by="t")
    assert registry.status("web2").state == "requested"


@pytest.mark.parametrize("part", ["cakey", "cacert", "cacrl", "serial", "cert_inventory"])
def test_R_09_half_a_ca_is_refused_with_a_list_and_nothing_is_made(empty_site, part: str) -> None:
    empty_site.bootstrap()
    path = getattr(empty_site.files, part)
    path.unlink()
    before = empty_site.snapshot()
    with pytest.raises(ConfigError) as error:
        empty_site.bootstrap()
    missing, _, there = error.value.message.partition("There:")
    assert str(path) in missing
    assert str(path) not in there
    assert there.count(",") == 3
    assert empty_site.snapshot() == before


@pytest.mark.slow
@needs_root
def test_R_10_a_directory_of_somebody_else_is_said_with_the_user(pem) -> None:
    root = Path(tempfile.mkdtemp(prefix="bunraku-r10-"))
    try:
        root.chmod(0o755)
        site = Site(root)
        site.bootstrap()
        site.ssldir.root.chmod(0o755)
        child = site.in_child("bootstrap_as_nobody")
        assert child.returncode == 1
        last = child.stderr.strip().splitlines()[-1]
        assert last.startswith("shared.errors.ConfigError: The CA in")
        assert "Permission denied" in last
    finally:
        shutil.rmtree(root)


async def test_R_11_a_request_whose_answer_was_lost_counts_as_submitted_and_the_poll_goes_on(site, pem) -> None:
    ca = site.service()
    text = pem("web1")
    await ca.submit_request("web1", text)
    with pytest.raises(BadRequest, match="already has a requested certificate") as error:
        await ca.submit_request("web1", text)
    assert error.value.status == 400  # what agents take for "it is there already"
    await ca.set_state("web1", "signed")
    assert b"BEGIN CERTIFICATE" in (await ca.certificate("web1") or b"")
    await ca.close()


def test_R_12_revoking_again_and_again_changes_nothing(site, pem) -> None:
    registry = site.registry()
    registry.submit("web1", pem("web1"), by="t")
    registry.sign("web1", by="t")
    registry.authority.revoke("web1", by="t")
    before = site.files.cacrl.read_bytes()
    for _ in range(100):
        assert registry.authority.revoke("web1", by="t") == [2]
    assert site.files.cacrl.read_bytes() == before
    registry.delete("web1", by="t")
    assert registry.authority.revoke("web1", by="t") == [2]  # the inventory knows it
    for _ in range(10):
        registry.clean(["web1"], by="t")
    assert len(list(registry.authority.crl())) == 1


@pytest.mark.slow
async def test_R_13_a_caller_who_leaves_leaves_nothing_half_done(site, pem) -> None:
    """Cancelled after each number of turns of the loop: signed with all that belongs to it, or still waiting."""
    ca = site.service(autosign=True)
    outcomes = set()
    for turns in range(0, 30, 2):
        name = f"n{turns}"
        task = asyncio.create_task(ca.submit_request(name, pem(name)))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await ca.close()
    for turns in range(0, 30, 2):
        status = site.registry().status(f"n{turns}")
        outcomes.add(status.state if status else None)
        assert status is None or status.state == "signed", "a request that was stored was not brought to its end"
    assert "signed" in outcomes
    check_invariants(site)


@pytest.mark.parametrize(
    ("error", "count", "level"),
    [(ValueError("nobody foresaw it"), 1, logging.ERROR), (Denied("that is not allowed"), 0, logging.INFO)],
    ids=["a fault", "a refusal"],
)
async def test_R_41_what_the_ca_raises_after_its_caller_has_left_is_logged(
    site, caplog: pytest.LogCaptureFixture, error: Exception, count: int, level: int
) -> None:
    ca = site.service()
    may_go_on, begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail() -> None:
        loop.call_soon_threadsafe(begun.set)
        assert may_go_on.wait(10)
        raise error

    ca.authority.refresh_crl_if_due = fail
    caplog.set_level(logging.INFO)
    caller = asyncio.create_task(ca.refresh_crl_if_due())
    await asyncio.wait_for(begun.wait(), 10)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    may_go_on.set()
    await ca.close()
    await asyncio.sleep(0)
    (record,) = [each for each in caplog.records if str(error) in each.getMessage()]
    assert record.levelno == level
    assert (record.exc_info is not None) == bool(count)
    assert ca.supervisor.failures[CHANGE_CA] == count


def test_R_28_serials_and_list_numbers_do_not_depend_on_the_clock(site, pem) -> None:
    registry = site.registry()
    made: list[x509.Certificate] = []
    for step, hours in enumerate((0, -1, -24, 48)):
        site.clock.pass_(hours=hours)
        name = f"n{step}"
        registry.submit(name, pem(name), by="t")
        made.append(registry.sign(name, by="t"))
        registry.authority.revoke(name, by="t")
    assert [c.serial_number for c in made] == [2, 3, 4, 5]
    assert crl.number_of(registry.authority.crl()) == 4


def test_a_lock_that_another_holds_too_long_is_an_error_that_names_it(site, pem) -> None:
    holder = site.store()
    registry = site.registry()
    registry.store.lock_timeout = 0.05
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with holder.writing():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert inside.wait(10)
        with pytest.raises(Unavailable, match=f"locked by process {os.getpid()}"):
            registry.submit("web1", pem("web1"), by="t")
    finally:
        leave.set()
        thread.join(10)
    registry.submit("web1", pem("web1"), by="t")


def test_a_torn_inventory_line_is_passed_over() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    line = str(inventory.InventoryEntry(5, moment, moment, "/CN=a"))
    found = list(inventory.inventory_entries(line + line[:30] + "\n" + "0xzz a b c\n# note\n" + line.replace("0x0005", "0x0006")))
    assert [record.serial for record in found] == [5, 6]
