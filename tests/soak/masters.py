"""
Masters that share a database, while things go wrong around them, for minutes: `make soak MASTERS=3`. Ends with 1 when something was lost.

HAProxy gives each connection to the next master. Simulated agents loop, each of their runs on several connections; newcomers get
certificates, some of which are revoked; Puppet's own agents run, if they are installed; code is deployed. Meanwhile, in turn: masters
are killed, PostgreSQL is stopped, crashes and stands still, and a master stands still. The clock of one master is a minute ahead.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import ssl
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import uvloop
from cryptography import x509

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from certs import crl
from certs.files import bundles
from tests.e2e.test_deployments import ENVIRONMENT, V3, code, run
from tests.gate import caches
from tests.interop.peers import PUPPET_8, OtherAgent
from tests.soak.faults import Clock
from tests.soak.outcome import complaints
from tests.soak.run import Verdict
from tests.soak.standing import metrics
from tests.support.balancer import balancer
from tests.support.control_repository import ControlRepository
from tests.support.ports import reserved_port
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import MasterProcess, RealAgent, has_real_puppet
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.simulated_agents import FAILURES, Record, RunFailed, Server, SimulatedAgent, with_certificates

ANSWER = 30.0  # seconds for one answer
PUT_OFF = 120.0  # seconds for which an agent repeats a request that is answered 503
RECONNECTS = 0.15  # of an agent's requests come on another connection
AHEAD = 60  # seconds that the clock of the last master is ahead
HELD = 8.0  # seconds that a fault lasts
HANGS = 20.0  # seconds that a master stands still: others count it as dead by then
PAUSE = 6.0  # seconds between two faults
REVOKED = 1.0  # seconds until a revoked certificate is refused by all masters that nothing is wrong with
RECOVERED = 120.0  # seconds after the last fault in which everything has to come back by itself


@dataclass(slots=True)
class Connections:
    """The connections of one run of an agent, each to the next master; a request that is answered 503 comes again."""

    connect: Callable[[], Awaitable[RawClient]]
    chance: random.Random
    client: RawClient | None = None

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> RawAnswer:
        until = time.monotonic() + PUT_OFF
        while True:
            if self.client is None or self.chance.random() < RECONNECTS:
                await self.close()
                self.client = await self.connect()
            answer = await self.client.ask(method, target, body, **headers)
            if answer.status != 503 or time.monotonic() > until:
                return answer
            await self.close()
            await asyncio.sleep(self.chance.uniform(0.2, 1))

    async def close(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            await client.close()


@dataclass(eq=False, repr=False)
class MastersSoak:
    """Masters of one database, everything that is done to them, and what became of it."""

    masters: list[MasterProcess]
    postgresql: PostgresqlServer
    address: str
    repository: ControlRepository
    port: int
    folder: Path
    options: argparse.Namespace
    chance: random.Random
    verdict: Verdict = field(default_factory=Verdict)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    down: list[MasterProcess] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    disturbed: list[tuple[object, float, float]] = field(default_factory=list)  # a master, or None for the database, from and until
    commits: dict[str, str] = field(default_factory=dict)  # by stamp
    deployed: list[str] = field(default_factory=list)  # stamps
    runs: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    reports: set[str] = field(default_factory=set)
    signed: dict[str, int] = field(default_factory=dict)
    revoked: dict[str, int] = field(default_factory=dict)
    seconds_served: list[float] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    lists: dict[int, str] = field(default_factory=dict)  # digests of revocation lists by their number

    # -- agents -----------------------------------------------------------------------------------

    async def connect(self, name: str, port: int = 0) -> RawClient:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        if name:
            context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return await RawClient.connect(port or self.port, context, server="localhost", timeout=ANSWER)

    async def life(self, name: str) -> None:
        while not self.over.is_set():
            await asyncio.sleep(self.chance.uniform(0, self.options.interval))
            await self.run_once(name)

    async def run_once(self, name: str) -> bool:
        """Have an agent run; return whether it came to its report."""
        connections = Connections(lambda: self.connect(name), self.chance)
        try:
            stamps, commit = await run(connections, name, is_static=name < "node1")  # type: ignore[arg-type]
            if {self.commits.get(stamp) for stamp in stamps} != {commit}:
                self.wrong.append(f"{name} got {sorted(stamps)} and a catalog of {commit}")
            number = str(uuid.uuid4())
            text = {"host": name, "time": datetime.now(UTC).isoformat(), "status": "unchanged", "transaction_uuid": number}
            answer = await connections.ask(
                "PUT", f"{V3}/report/{name}?{ENVIRONMENT}", json.dumps(text).encode(), Content_Type="application/json"
            )
            if answer.status != 200:
                raise AssertionError(f"a report was answered {answer.status}: {answer.text[:200]}")
            self.reports.add(number)
            self.runs += 1
        except FAILURES as err:
            self.failed[type(err).__name__] += 1
            return False
        except AssertionError as err:
            self.wrong.append(f"{name}: {traceback.format_exception(err, limit=-1)}"[:500])
        finally:
            await connections.close()
        return True

    async def real(self, agent: RealAgent) -> None:
        """Runs of Puppet's own agent, which change nothing here; the last one has to succeed."""
        while not self.over.is_set():
            done = await asyncio.to_thread(agent.test, "--noop")
            self.failed[f"a run of {agent.certname}"] += done.code != 0
            await asyncio.sleep(5)

    # -- the CA -----------------------------------------------------------------------------------

    async def newcomers(self) -> None:
        """One after the other gets a certificate; every second one loses it."""
        number = 0
        while not self.over.is_set():
            name, number = f"new{number:05}.test", number + 1
            try:
                await SimulatedAgent(name, self.folder, Server(self.port, self.port, timeout=ANSWER), Record()).bootstrap()
                self.signed[name] = x509.load_pem_x509_certificate((self.folder / f"{name}.pem").read_bytes()).serial_number
                if number % 2:
                    await self.revoke(name)
            except (RunFailed, *FAILURES) as err:
                self.failed[f"a newcomer: {type(err).__name__}"] += 1
            await self.collect_lists()
            await asyncio.sleep(self.chance.uniform(0, 2 * self.options.newcomer_every))

    async def revoke(self, name: str) -> None:
        """Have a certificate revoked, and see on open connections when each master that answers refuses it."""
        opened = [(master, await self.connect(name, master.port)) for master in self.masters if master not in self.down]
        connections = Connections(lambda: self.connect("master1.test"), self.chance)
        try:
            body = json.dumps({"desired_state": "revoked"}).encode()
            target = f"/puppet-ca/v1/certificate_status/{name}?{ENVIRONMENT}"
            answer = await connections.ask("PUT", target, body, Content_Type="application/json")
            if answer.status not in (200, 204):
                raise RunFailed(f"a revocation was answered {answer.status}: {answer.text[:200]}")
            self.revoked[name] = self.signed[name]
            since = time.monotonic()
            await asyncio.gather(*(self.until_refused(name, master, client, since) for master, client in opened))
        finally:
            for each in (connections, *(client for _, client in opened)):
                await each.close()

    async def until_refused(self, name: str, master: MasterProcess, client: RawClient, since: float) -> None:
        served = since
        while True:
            began = time.monotonic()
            try:
                answer = await client.ask("GET", f"{V3}/node/{name}?{ENVIRONMENT}")
            except FAILURES:
                break
            if answer.status == 200:
                served = began
            elif answer.status != 503:
                break
            if began > since + RECOVERED:
                break
            await asyncio.sleep(0.02)
        if any(who in (None, master) and start < served and end > since - PAUSE for who, start, end in self.disturbed):
            return
        self.seconds_served.append(served - since)
        if served - since > self.options.revoked_within:
            self.late.append(f"{name} was served by {master.settings['certname']} {served - since:.2f} s after its revocation")

    async def collect_lists(self) -> None:
        for master in self.masters:
            if master in self.down:
                continue
            try:
                client = await self.connect("master1.test", master.port)
                try:
                    answer = await client.ask("GET", "/puppet-ca/v1/certificate_revocation_list/ca")
                finally:
                    await client.close()
            except FAILURES:
                continue
            for found in bundles.revocation_lists(answer.body) if answer.status == 200 else ():
                number, digest = crl.number_of(found), hashlib.sha256(bundles.dump([found])).hexdigest()
                if self.lists.setdefault(number, digest) != digest:
                    self.wrong.append(f"two revocation lists have the number {number}")

    # -- code -------------------------------------------------------------------------------------

    async def deployments(self) -> None:
        while not self.over.is_set():
            await self.deploy(self.chance.choice([each for each in self.masters if each not in self.down]))
            await asyncio.sleep(self.chance.uniform(0, 2 * self.options.deploy_every))

    async def deploy(self, master: MasterProcess) -> bool:
        """Deploy the next commit on a master; return whether that succeeded."""
        for old in self.repository.folder.glob("modules/m/**/s[0-9]*"):
            old.unlink()
        stamp = f"s{len(self.commits)}"
        self.commits[stamp] = await asyncio.to_thread(self.repository.commit, code(stamp))
        done = await asyncio.to_thread(master.puppet, "deploy", "production")
        if done.code in (0, 2):
            self.deployed.append(stamp)
        else:
            self.failed["a deployment"] += 1
            print(f"    {stamp} was not deployed: {done.text.strip()[-300:]}", flush=True)
        return done.code in (0, 2)

    # -- faults -----------------------------------------------------------------------------------

    @contextmanager
    def disturbing(self, what: str, who: MasterProcess | None) -> Iterator[None]:
        """Something is wrong with a master, or with None the database, within the block."""
        began, place = time.monotonic(), len(self.disturbed)
        self.disturbed.append((who, began, float("inf")))
        self.faults[what] += 1
        if who is not None:
            self.down.append(who)
        try:
            yield
        finally:
            self.disturbed[place] = (who, began, time.monotonic() + PAUSE)
            if who is not None:
                self.down.remove(who)

    async def kill(self, master: MasterProcess) -> None:
        with self.disturbing("a master killed", master):
            await asyncio.to_thread(master.kill)
            await asyncio.sleep(HELD)
            await asyncio.to_thread(master.start)

    async def hang(self, master: MasterProcess) -> None:
        with self.disturbing("a master stands still", master):
            os.kill(master.pid, signal.SIGSTOP)
            await asyncio.sleep(HANGS)
            os.kill(master.pid, signal.SIGCONT)

    async def stop_database(self, how: signal.Signals) -> None:
        with self.disturbing("PostgreSQL crashes" if how == signal.SIGQUIT else "PostgreSQL is stopped", None):
            await asyncio.to_thread(self.postgresql.stop, how)
            await asyncio.sleep(HELD)
            await asyncio.to_thread(self.postgresql.start)

    async def freeze_database(self) -> None:
        with self.disturbing("PostgreSQL stands still", None), self.postgresql.frozen():
            await asyncio.sleep(HELD)

    async def happen(self) -> None:
        """Do one thing after the other until the time is up."""
        until, number = time.monotonic() + self.options.seconds, 0
        while True:
            for fault in (
                lambda master: self.kill(master),
                lambda _: self.stop_database(signal.SIGINT),
                lambda master: self.hang(master),
                lambda master: self.kill(master),
                lambda _: self.stop_database(signal.SIGQUIT),
                lambda _: self.freeze_database(),
            ):
                if time.monotonic() > until:
                    return
                await fault(self.masters[number % len(self.masters)])
                number += 1
                await asyncio.sleep(PAUSE)
            print(
                f"  {self.runs} runs, {len(self.deployed)} deployments, {len(self.signed)} certificates, {len(self.revoked)} revoked",
                flush=True,
            )

    # -- all of it --------------------------------------------------------------------------------

    async def soak(self, names: list[str], real: list[RealAgent]) -> None:
        self.verdict.of("the first deployment", [] if await self.deploy(self.masters[0]) else ["failed"], "")
        async with asyncio.TaskGroup() as tasks:
            for each in (*map(self.life, names), *map(self.real, real), self.newcomers(), self.deployments()):
                tasks.create_task(each)
            await self.happen()
            self.over.set()
        await self.judge(names, real)

    async def judge(self, names: list[str], real: list[RealAgent]) -> None:
        for what, times in self.faults.items():
            print(f"  {times} × {what}")
        print(f"  failed meanwhile: {dict(self.failed) or 'nothing'}")
        until = time.monotonic() + RECOVERED
        back = await self.deploy(self.masters[0])
        ended = await asyncio.gather(*map(self.run_once, names))
        done = [await asyncio.to_thread(each.test, "--noop") for each in real]
        links = {Path(master.settings["environmentpath"], "production").resolve().name for master in self.masters}
        while waiting := [each for each in self.masters if await asyncio.to_thread(self.pending, each)]:
            if time.monotonic() > until:
                break
            await asyncio.sleep(0.5)
        problems = [] if back else ["a deployment failed"]
        problems += [f"{name} does not run" for name, has_run in zip(names, ended, strict=True) if not has_run]
        problems += [each.text[-300:] for each in done if each.code]
        problems += [f"reports wait at {each.settings['certname']}" for each in waiting]
        self.verdict.of("all comes back by itself", problems, f"{len(names)} agents, {len(real)} of Puppet's own")
        await self.collect_lists()
        self.verdict.of("no run of two versions, no wrong answer", self.wrong, f"{self.runs} runs, {len(self.deployed)} deployments")
        last = {self.commits[self.deployed[-1]]}
        self.verdict.of("all masters have the last version", [f"{links} instead of {last}"] if links != last else [], "")
        slowest = max(self.seconds_served, default=0.0)
        self.verdict.of("no revoked agent is served", self.late, f"{len(self.revoked)} revoked; the slowest took {slowest:.2f} s")
        await asyncio.to_thread(self.judge_database)
        for each in self.masters:
            problems = list(complaints(each.log))
            problems += [f"it ended with {code}"] if (code := await asyncio.to_thread(each.stop)) else []
            self.verdict.of(f"{each.settings['certname']} has no incident", problems, f"{len(each.log) // 1000} kB of log")

    def pending(self, master: MasterProcess) -> float:
        return metrics(int(master.settings["metrics_port"])).get("puppet_state_pending_oldest_seconds", 0.0)

    def judge_database(self) -> None:
        with psycopg.connect(self.address) as connection:
            bodies = [bytes(body) for (body,) in connection.execute("SELECT body FROM state_reports")]
            inventory = {(name, int(serial, 16)) for name, serial in connection.execute("SELECT name, serial FROM state_ca_inventory")}
            row = connection.execute("SELECT crls, next_serial FROM state_ca").fetchone()
        stored = {match.decode() for body in bodies for match in re.findall(rb"transaction_uuid: '?([-0-9a-f]{36})", body)}
        self.verdict.of("no acknowledged report is lost", self.reports - stored, f"{len(self.reports)} reports")
        assert row is not None
        (revocations,) = bundles.revocation_lists(row[0].encode())
        on_list = set(crl.serials(revocations))
        numbers = Counter(self.signed.values())
        problems = [f"the serial {serial} was given out {times} times" for serial, times in numbers.items() if times > 1]
        problems += [
            f"the certificate of {name} is not in the inventory" for name, serial in self.signed.items() if (name, serial) not in inventory
        ]
        problems += [f"the revocation of {name} is lost" for name, serial in self.revoked.items() if serial not in on_list]
        problems += ["the next serial was given out already"] if int(row[1], 16) <= max(numbers, default=0) else []
        problems += ["an agent has a list with a higher number"] if crl.number_of(revocations) < max(self.lists, default=0) else []
        self.verdict.of(
            "the CA has lost nothing and used no serial twice", problems, f"{len(self.signed)} certificates, {len(self.lists)} lists"
        )
        self.verdict.of("no deadlock", ["there was one"] if "deadlock detected" in self.postgresql.log else [], "")


@contextmanager
def several_masters(
    folder: Path, number: int, address: str, repository: ControlRepository, stack: ExitStack
) -> Iterator[list[MasterProcess]]:
    """Masters that share the CA's key; all of them run."""
    masters: list[MasterProcess] = []
    try:
        for place in range(1, number + 1):
            root, name = folder / f"master{place}", f"master{place}.test"
            for each in ("conf", "code"):
                (root / each).mkdir(parents=True)
            settings = {"certname": name, "state": address, "deploy_repository": str(repository.folder)}
            (root / "conf" / "puppet.conf").write_text("\n".join(["[master]", *(f"{key} = {value}" for key, value in settings.items())]))
            process = MasterProcess(
                root,
                settings
                | {"key_type": "ec", "autosign": "true", "dns_alt_names": "localhost", "environmentpath": str(root / "code")}
                | {
                    "deploy_timeout": "30",
                    "basemodulepath": str(root / "modules"),
                    "metrics_port": str(stack.enter_context(reserved_port())),
                },
            )
            if masters:
                process.ca.mkdir(parents=True)
                shutil.copy2(masters[0].ca / "ca_key.pem", process.ca)
            if place == number and place > 1 and (clock := Clock.build(root)) is not None:
                process.environ = clock.environ
                clock.step(AHEAD)
            masters.append(process)
            process.start()
        yield masters
    finally:
        for process in masters:
            process.kill()


def soaked(options: argparse.Namespace) -> int:
    programs = postgresql_programs()
    if programs is None:
        sys.exit("PostgreSQL's server is not installed (Debian: postgresql)")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bunraku-soak-")))
        postgresql = PostgresqlServer(programs, synchronous_commit="on")
        stack.callback(postgresql.remove)
        postgresql.run_sql("CREATE DATABASE puppet")
        repository = ControlRepository(folder / "control")
        address = postgresql.address("puppet")
        masters = stack.enter_context(several_masters(folder, options.masters, address, repository, stack))
        port = stack.enter_context(balancer(folder / "proxy", *(each.port for each in masters)))
        agents = folder / "agents"
        agents.mkdir()
        names = [f"node{number:03}.test" for number in range(options.agents)]
        with_certificates(names, agents, masters[0].ca)
        shutil.copy(masters[0].ca / "ca_crt.pem", agents / "ca.pem")
        for kind, name in (("certs", "pem"), ("private_keys", "key")):
            shutil.copy(masters[0].ca.parent / kind / "master1.test.pem", agents / f"master1.test.{name}")
        real = [RealAgent(folder / "real7", port, "real7.test")] if has_real_puppet() else []
        real += (
            [OtherAgent(folder / "real8", port, "real8.test", release=PUPPET_8)] if caches.is_made("puppet8") and os.geteuid() == 0 else []
        )
        for each in real:
            each.root.mkdir()
        soak = MastersSoak(masters, postgresql, address, repository, port, agents, options, random.Random(options.seed))
        uvloop.run(soak.soak(names, real))
        if options.keep:
            for each in masters:
                (options.keep / f"{each.settings['certname']}.log").write_text(each.log)
    print("FAILED: " + "; ".join(soak.verdict.failed) if soak.verdict.failed else "all went well")
    return 1 if soak.verdict.failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masters", type=int, default=3, help="how many (default 3)")
    parser.add_argument("--seconds", type=float, default=600, help="of faults (default 600)")
    parser.add_argument("--agents", type=int, default=300, help="that loop meanwhile (default 300)")
    parser.add_argument("--interval", type=float, default=60, help="seconds at most between two runs of one (default 60)")
    parser.add_argument("--deploy-every", type=float, default=8, help="seconds between two deployments (default 8)")
    parser.add_argument("--newcomer-every", type=float, default=4, help="seconds between two certificates (default 4)")
    parser.add_argument("--revoked-within", type=float, default=REVOKED, help=f"seconds (default {REVOKED:g})")
    parser.add_argument("--seed", type=int, default=0, help="of what is left to chance (default 0)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the masters' logs are put at the end")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 4 * options.agents + 256)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(hard, wanted), hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # which ends the masters, too
    print(f"soaking {options.masters} masters for {options.seconds:g} s, {options.agents} agents, seed {options.seed}", flush=True)
    return soaked(options)


if __name__ == "__main__":
    sys.exit(main())
