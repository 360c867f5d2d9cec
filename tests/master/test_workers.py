from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from environments.store_questions import TOGETHER
from master.pools import frames
from master.pools.compile_pool import CompilePool
from master.pools.compile_worker import Overtime, PuppetDbQuestions, deadline
from master.pools.compiled_catalog import CompiledCatalog
from master.pools.jobs import CompileJob, CompileLogEntry, DefinitionsQuery
from master.pools.process_pool import GRACE
from master.pools.worker_process import COMMAND, Worker
from shared.data import plainjson
from shared.errors import BadData, BadRequest, CompileError, NotFound, PuppetError, Unavailable
from tests.support.compile_jobs import compile_pool
from tests.support.waiting import turns, until, until_late

pytestmark = pytest.mark.slow


@asynccontextmanager
async def pool(root: Path, manifest: str, **limits: Any) -> AsyncIterator[CompilePool]:
    folder = root / "environments" / "production" / "manifests"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.pp").write_text(manifest)
    environments = Environments(EnvironmentSettings((str(root / "environments"),)))
    settings: dict[str, Any] = {"size": 1, "timeout": 20.0, "memory": 2**30, "queue": 10, "cache": root / "cache"}
    workers = compile_pool(environments, **{**settings, **limits})
    try:
        yield workers
    finally:
        await workers.processes.close()


def job(name: str = "n", **facts: Any) -> CompileJob:
    return CompileJob(name, "production", facts=facts, parameters=facts, trusted={"certname": name}, server_facts={"servername": "m"})


def titles(catalog: CompiledCatalog) -> list[str]:
    return [each["title"] for each in json.loads(catalog.body)["resources"] if each["type"] == "Notify"]


async def test_a_catalog_comes_back_as_json_and_log_lines_as_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "puppet"):
        async with pool(tmp_path, "notify { \"${trusted['certname']} ${colour}\": }\nwarning('careful')") as workers:
            assert titles(await workers(job(colour="red"))) == ["n red"]
    assert any(record.levelno == logging.WARNING and "careful" in record.getMessage() for record in caplog.records)


async def test_an_error_keeps_its_place_and_the_worker_lives_on(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': message => 1 + $bad }\n") as workers:
        with pytest.raises(CompileError) as caught:
            await workers(job(bad="text"))
        assert caught.value.where is not None and (caught.value.where.line, caught.value.where.file) == (
            1,
            str(tmp_path / "environments/production/manifests/site.pp"),
        )
        assert str(caught.value).endswith("column: 30) on node n")
        assert titles(await workers(job(bad=2))) == ["x"]


async def paused(workers: CompilePool) -> tuple[int, asyncio.Task[CompiledCatalog]]:
    """A process that was stopped in the middle of a job, and who waits for the answer."""
    await workers(job())
    (worker,) = workers.processes._all
    os.kill(worker.process.pid, signal.SIGSTOP)
    await until(lambda: Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    asked = asyncio.create_task(workers(job()))
    await until(lambda: workers.processes.busy == 1)
    return worker.process.pid, asked


async def test_R_20_a_worker_that_dies_is_replaced_and_its_job_done_by_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers: list[str] = []
    async with pool(tmp_path, "notify { 'x': }", on_answer=lambda how, seconds: answers.append(how)) as workers:
        pid, asked = await paused(workers)
        os.kill(pid, signal.SIGKILL)
        assert titles(await asked) == ["x"]
        assert titles(await workers(job())) == ["x"]
        assert workers.processes.ended == {"died": 1}
    assert "ended with -9; another process is asked" in caplog.text
    assert answers == ["done"] * 3


async def test_it_is_counted_where_catalogs_come_from_and_what_keeps_them_from_memory(tmp_path: Path) -> None:
    manifest = "notify { $facts['a']: }\nif $facts['b'] { $now = time() }"
    async with pool(tmp_path, manifest, memo=2**20) as workers:
        for facts in ({"a": "x"}, {"a": "x"}, {"a": "y"}, {"a": "y", "b": 1}):
            await workers(job(**facts))
        last = workers.origins.last()
    assert last.origins == {"new": 1, "memory": 1, "node": 2}
    assert (last.uncacheable, last.reasons) == (1, [(("manifests/site.pp line 2", "the time is asked for"), 1)])


DEADLY = """
import os
import signal

from language.functions import Context, function


@function("m::die", returns="String")
def die(context: Context) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
"""


async def test_R_20_a_job_that_kills_two_workers_is_not_given_to_a_third(tmp_path: Path) -> None:
    answers: list[str] = []
    async with pool(tmp_path, "notify { m::die(): }", on_answer=lambda how, seconds: answers.append(how)) as workers:
        place = tmp_path / "environments/production/modules/m/lib/puppet/functions/m/die.py"
        place.parent.mkdir(parents=True)
        place.write_text(DEADLY)
        with pytest.raises(PuppetError, match="ended with -9"):
            await workers(job())
        assert workers.processes.ended == {"died": 2}
        (tmp_path / "environments/production/manifests/site.pp").write_text("notify { 'well': }")
        assert titles(await workers(job())) == ["well"]
    assert answers == ["died", "done"]


async def test_an_idle_worker_that_died_is_replaced_without_anyone_noticing(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }") as workers:
        await workers(job())
        (worker,) = workers.processes._all
        os.kill(worker.process.pid, signal.SIGKILL)
        assert titles(await workers(job())) == ["x"]
        await worker.process.wait()
        assert workers.processes.ended == {"died": 1}


SHORT_LIVED = """
if mkdir "$0.lock" 2>/dev/null; then kill -9 $$; fi
exec "$@"
"""


async def test_R_20_a_worker_that_dies_while_it_starts_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "start"
    script.write_text(SHORT_LIVED)
    monkeypatch.setattr("master.pools.worker_process.COMMAND", ("/bin/sh", str(script), *COMMAND))
    async with pool(tmp_path, "notify { 'x': }") as workers:
        assert titles(await workers(job())) == ["x"]
    assert script.with_suffix(".lock").is_dir()


async def test_R_20_when_no_worker_can_be_started_the_caller_hears_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("master.pools.worker_process.COMMAND", ("/bin/false",))
    async with pool(tmp_path, "notify { 'x': }") as workers:
        await workers.processes.warm()
        with pytest.raises(PuppetError, match="could not be started"):
            await workers(job())


async def test_a_worker_that_hangs_is_ended_and_its_job_is_not_repeated(tmp_path: Path) -> None:
    answers: list[str] = []
    async with pool(tmp_path, "notify { 'x': }", on_answer=lambda how, seconds: answers.append(how)) as workers:
        _, asked = await paused(workers)
        await until_late(asked, workers.processes.timeout + GRACE)
        with pytest.raises(CompileError, match="compile_timeout"):
            await asked
        assert titles(await workers(job())) == ["x"]
        assert workers.processes.ended == {"hung": 1}
    assert answers == ["done", "timeout", "done"]


async def test_a_worker_that_has_done_its_share_is_replaced(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }", jobs=2) as workers:
        pids = []
        for _ in range(5):
            assert titles(await workers(job())) == ["x"]
            pids += [worker.process.pid for worker in workers.processes._all]
        assert workers.processes.ended == {"jobs": 2}
    assert len(set(pids)) == 3


async def test_a_worker_at_work_is_replaced_after_its_answer_when_all_are_renewed(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }", size=2) as workers:
        await asyncio.gather(workers(job()), workers(job()))
        old = {worker.process.pid for worker in workers.processes._all}
        asked = asyncio.create_task(workers(job()))
        await asyncio.sleep(0)
        assert workers.processes.busy == 1
        workers.processes.renew()
        assert titles(await asked) == ["x"]
        assert workers.processes.ended == {"reload": 2}
        assert titles(await workers(job())) == ["x"]
        assert not old & {worker.process.pid for worker in workers.processes._all}


async def test_CMP_05_a_compile_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with pool(tmp_path, "Integer[1, 10000000000].each |$i| { $x = $i }", timeout=1.0) as workers:
        with pytest.raises(CompileError, match="compile_timeout"):
            await workers(job())


async def test_CMP_05_a_compile_that_eats_memory_is_ended(tmp_path: Path) -> None:
    manifest = '$x = Integer[1, 100000000].map |$i| { "a rather long text ${i} a rather long text" }'
    async with pool(tmp_path, manifest, memory=256 * 2**20, timeout=60.0) as workers:
        with pytest.raises(PuppetError, match="compile_memory"):
            await workers(job())
        site = tmp_path / "environments/production/manifests/site.pp"
        site.write_text("notify { 'well': }")
        assert titles(await workers(job())) == ["well"]
        site.write_text(manifest)
        with pytest.raises(PuppetError, match="compile_memory"):
            await workers(job())
        # The last one was asked of a process that had answered before, so that it had one more chance.
        assert workers.processes.ended == {"memory": 3}


async def test_beyond_the_queue_the_answer_is_not_now(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }", queue=1) as workers:
        results = await asyncio.gather(*(workers(job()) for _ in range(4)), return_exceptions=True)
    refused = [each for each in results if isinstance(each, Unavailable)]
    assert len(refused) == 2 and all(5 <= each.retry_after <= 60 for each in refused)


async def test_a_caller_who_leaves_does_not_leave_an_answer_to_the_next(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def answer(question: Mapping[str, Any]) -> bytes:
        begun.set()
        return b"[]"

    manifest = "$rows = puppetdb_query('nodes{}')\nInteger[1, 1000000000].each |$i| { $x = $i }\nnotify { $trusted['certname']: }"
    async with pool(tmp_path, manifest, on_question=answer) as workers:
        asked = asyncio.create_task(workers(job("first")))
        await begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        (tmp_path / "environments/production/manifests/site.pp").write_text("notify { $trusted['certname']: }")
        assert titles(await workers(job("second"))) == ["second"]


async def test_CMP_09_no_catalog_holds_another_nodes_values(tmp_path: Path) -> None:
    manifest = 'notify { "${trusted[\'certname\']} ${secret}": }\nif $secret =~ /[05]$/ { fail("no ${secret}") }'
    async with pool(tmp_path, manifest, size=2, queue=100) as workers:
        results = await asyncio.gather(*(workers(job(f"n{i}", secret=f"s{i}")) for i in range(60)), return_exceptions=True)
    for number, result in enumerate(results):
        if number % 5 == 0:
            assert isinstance(result, CompileError) and f"no s{number}" in str(result)
        else:
            assert isinstance(result, CompiledCatalog) and titles(result) == [f"n{number} s{number}"]


async def test_a_changed_manifest_is_seen_by_the_next_compile(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'old': }") as workers:
        assert titles(await workers(job())) == ["old"]
        (tmp_path / "environments/production/manifests/site.pp").write_text("notify { 'brand new': }")
        assert titles(await workers(job())) == ["brand new"]


async def test_an_environment_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with pool(tmp_path, "") as workers:
        with pytest.raises(NotFound, match="Could not find environment 'nope'"):
            await workers(CompileJob("n", "nope"))


async def test_closing_leaves_no_process(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }", size=2) as workers:
        await asyncio.gather(workers(job()), workers(job()))
        processes = [worker.process for worker in workers.processes._all]
    assert len(processes) == 2 and all(process.returncode is not None for process in processes)


async def test_definitions_are_listed_by_the_same_processes(tmp_path: Path) -> None:
    async with pool(tmp_path, "class a { }\ndefine b { }\nnotify { 'x': }") as workers:
        assert titles(await workers(job())) == ["x"]
        assert [each["name"] for each in await workers.definitions(DefinitionsQuery("production"))] == ["a", "b"]
        assert (await workers.definitions(DefinitionsQuery("production", name="b")))[0]["kind"] == "defined_type"
        with pytest.raises(BadRequest, match="Not the name"):
            await workers.definitions(DefinitionsQuery("production", name="../x"))
        assert len(workers.processes._all) == 1


async def test_facts_that_are_nested_too_deeply_are_refused_and_the_process_goes_on(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(20_000):  # Python 3.12 and later write 2000
        deep = [deep]
    async with pool(tmp_path, "notify { 'x': }\n") as workers:
        with pytest.raises(BadData, match="nested too deeply"):
            await workers(job(deep=deep))
        assert titles(await workers(job())) == ["x"]
        assert workers.processes.ended == {}


async def test_classes_and_modules_are_listed_by_the_same_processes(tmp_path: Path) -> None:
    async with pool(tmp_path, "class c ($p = 1) { }\n") as workers:
        listed = json.loads(await workers.listing("classes", "production"))
        assert listed["files"][0]["classes"] == [{"name": "c", "params": [{"default_literal": 1, "default_source": "1", "name": "p"}]}]
        assert json.loads(await workers.listing("modules")) == [{"modules": [], "name": "production"}]
        with pytest.raises(NotFound):
            await workers.listing("classes", "nowhere")


async def test_what_is_logged_for_a_catalog_can_be_heard_also_from_memory(tmp_path: Path) -> None:
    async with pool(tmp_path, "warning('careful')\nnotify { \"${unknown}x\": }", memo=2**20) as workers:
        for _ in range(2):
            heard: list[CompileLogEntry] = []
            await workers(job(), heard)
            site = str(tmp_path / "environments/production/manifests/site.pp")
            assert [(each.level, each.source, each.file, each.line) for each in heard] == [
                ("warning", "Scope(Class[main])", None, None),
                ("warning", "", site, 2),
            ]
            assert heard[1].message == f"Unknown variable: 'unknown'. (file: {site}, line: 2, column: 13)"


async def test_a_pattern_that_never_ends_costs_its_caller_only(tmp_path: Path) -> None:
    async with pool(tmp_path, f"class {'a' * 60}b {{ }}", timeout=1.0) as workers:
        with pytest.raises(CompileError, match="The listing of production's resource types took longer"):
            await workers.definitions(DefinitionsQuery("production", pattern="^(a|aa)+$"))
        workers.processes.timeout = 20.0
        assert len(await workers.definitions(DefinitionsQuery("production", pattern="^a+b$"))) == 1


async def test_a_node_comes_back_to_the_process_that_remembers_its_catalog(tmp_path: Path) -> None:
    ended: list[str] = []
    limits: dict[str, Any] = {"size": 3, "memo": 2**20, "on_answer": lambda how, seconds: ended.append(how)}
    async with pool(tmp_path, "notify { $trusted['certname']: }", **limits) as workers:
        names = ["a", "b", "c"]
        for _ in range(3):
            bodies = await asyncio.gather(*[workers(job(name, uptime=len(ended))) for name in names])
            assert [titles(body) for body in bodies] == [[name] for name in names]
            names = names[1:] + names[:1]
    assert ended[:3] == ["done"] * 3
    assert ended[3:] == ["memory"] * 6


async def test_without_memory_every_catalog_is_compiled(tmp_path: Path) -> None:
    ended: list[str] = []
    async with pool(tmp_path, "notify { 'x': }", on_answer=lambda how, seconds: ended.append(how)) as workers:
        for _ in range(2):
            await workers(job())
    assert ended == ["done"] * 2


async def test_PRS_03_a_frame_that_cannot_be_read_fails_its_job_and_no_process(tmp_path: Path) -> None:
    async with pool(tmp_path, "notify { 'x': }") as workers:
        assert titles(await workers(job())) == ["x"]
        (process,) = workers.processes._all
        for number in (10**400, -(10**400)):
            with pytest.raises(BadRequest, match="cannot be read: A number is too long"):
                await workers(job(x=number))
        assert titles(await workers(job())) == ["x"]
        assert workers.processes._all == {process} and not workers.processes.ended


ASKING = "$rows = puppetdb_query('nodes{}')\nnotify { \"${rows.length} rows\": }"


async def test_a_question_to_a_puppetdb_is_answered_by_the_listening_process(tmp_path: Path) -> None:
    questions: list[Any] = []

    async def answer(question: Mapping[str, Any]) -> bytes:
        questions.append(question)
        return b"[" + b",".join([b'{"certname":"n"}'] * 20_000) + b"]"

    async with pool(tmp_path, ASKING, on_question=answer) as workers:
        assert titles(await workers(job())) == ["20000 rows"]
        assert titles(await workers(job())) == ["20000 rows"]
    assert questions == [{"query": "nodes{}"}] * 2


async def test_all_that_a_compilation_asked_is_asked_again_at_the_same_time_but_not_too_much_at_once(tmp_path: Path) -> None:
    number = TOGETHER + 2
    waiting = most = 0

    async def answer(question: Mapping[str, Any]) -> bytes:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await turns(3)
        waiting -= 1
        return plainjson.dumps([question["query"]])

    manifest = f'Integer[1, {number}].each |$n| {{ notify {{ "${{puppetdb_query("q${{n}}")}}": }} }}'
    async with pool(tmp_path, manifest, on_question=answer, memo=2**20) as workers:
        first = titles(await workers(job()))
        assert len(first) == number and most == 1
        assert titles(await workers(job())) == first and most == TOGETHER


@dataclass
class SlowStore:
    """A PuppetDB that does not answer while `hangs`."""

    hangs: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, question: Mapping[str, Any]) -> bytes:
        self.asked.set()
        if self.hangs:
            await asyncio.Event().wait()
        return b"[]"


async def failure_in_vain(workers: CompilePool, job: CompileJob, store: SlowStore) -> CompileError:
    """Why a job fails whose question is not answered in time."""
    store.hangs = True
    store.asked.clear()
    asked = asyncio.create_task(workers(job))
    await store.asked.wait()
    await until_late(asked, workers.processes.timeout)
    with pytest.raises(CompileError, match="compile_timeout") as failed:
        await asked
    store.hangs = False
    return failed.value


async def test_a_question_that_is_asked_again_and_takes_too_long_fails_its_job_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("master.pools.process_pool.GRACE", 60)
    store = SlowStore()
    async with pool(tmp_path, ASKING, on_question=store.answer, memo=2**20) as workers:
        assert titles(await workers(job())) == ["0 rows"]
        pids = {worker.process.pid for worker in workers.processes._all}
        failed = await failure_in_vain(workers, job(), store)
        assert "PuppetDB" in str(failed) + failed.hint
        assert titles(await workers(job())) == ["0 rows"]
        assert {worker.process.pid for worker in workers.processes._all} == pids


async def test_a_question_that_fails_fails_its_job_only(tmp_path: Path) -> None:
    async def answer(question: Mapping[str, Any]) -> bytes:
        raise PuppetError("Failed to execute it")

    async with pool(tmp_path, f"if $ask {{ {ASKING} }} else {{ notify {{ 'x': }} }}", on_question=answer) as workers:
        with pytest.raises(CompileError, match=r"Failed to execute it \(file: .*site.pp, line: 1, column: \d+\)"):
            await workers(job(ask=True))
        pids = {worker.process.pid for worker in workers.processes._all}
        assert titles(await workers(job())) == ["x"]
        assert {worker.process.pid for worker in workers.processes._all} == pids


async def test_a_question_that_takes_too_long_is_an_error_at_its_place_and_its_answer_reaches_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("master.pools.process_pool.GRACE", 60)
    store = SlowStore()
    async with pool(tmp_path, f"if $ask {{ {ASKING} }} else {{ notify {{ 'x': }} }}", on_question=store.answer) as workers:
        failed = await failure_in_vain(workers, job(ask=True), store)
        assert failed.where is not None and failed.where.line == 1
        pids = {worker.process.pid for worker in workers.processes._all}
        assert titles(await workers(job())) == ["x"]
        assert {worker.process.pid for worker in workers.processes._all} == pids


OUT_OF_STEP = """
import os, sys
from master.pools import frames
frames.read(sys.stdin.buffer)
os.write(1, frames.pack({"ready": os.getpid(), "warning": ""}))
while frames.read(sys.stdin.buffer):
    os.write(1, ANSWER)
"""
CUT = "b'\\0\\0\\0\\2\\0\\0\\0\\1{]x'"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('frames.pack({"error": "BadRequest", "message": "late", "number": 0})', "answered another question than it was asked"),
        (
            'frames.pack({"done": True, "text": [0, 0, 0, ""], "code_id": None, "rich": False})',
            "answered another question than it was asked",
        ),
        (CUT, "The catalog of second could not be made: Not JSON"),
    ],
)
async def test_CMP_09_a_process_that_answers_anything_but_its_job_is_ended_and_the_job_done_by_another(
    answer: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = OUT_OF_STEP.replace("ANSWER", answer)
    monkeypatch.setattr("master.pools.worker_process.COMMAND", (sys.executable, "-c", code))
    async with pool(tmp_path, "notify { $trusted['certname']: }") as workers:
        await workers.processes.warm()
        monkeypatch.setattr("master.pools.worker_process.COMMAND", COMMAND)
        assert titles(await workers(job("second"))) == ["second"]
        assert workers.processes.ended == {"died": 1}
    assert reason in caplog.text and "another process is asked" in caplog.text


def test_CMP_09_a_process_takes_no_answer_for_a_job() -> None:
    settings = asdict(EnvironmentSettings(()))
    setup = frames.pack({"settings": settings, "cache": "", "memory": 2**40, "memo": 0})
    with subprocess.Popen([*COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        printed, _ = process.communicate(setup + frames.pack({"answer": True}, b"[]"), timeout=60)
    assert process.returncode == 0
    assert frames.HEAD.unpack(printed[: frames.HEAD.size])[0] + frames.HEAD.size == len(printed)  # one frame: it was ready


def test_CMP_09_a_deadline_that_passes_with_a_question_leaves_no_answer_to_it() -> None:
    answers = BytesIO(frames.pack({"answer": True}, b"[1]") + frames.pack({"answer": True}, b"[2]"))
    questions = PuppetDbQuestions(answers, lambda frame: signal.raise_signal(signal.SIGALRM))
    with pytest.raises(Overtime), deadline(60):
        questions.ask([{"query": "a"}, {"query": "b"}])
    assert answers.read() == b""


SPEECHLESS = """
import os, sys, time
from master.pools import frames
os.read(0, 2**20)
os.write(1, frames.pack({"ready": os.getpid(), "warning": ""}))
os.read(0, 2**20)
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
os.close(1)
time.sleep(60)
"""


async def test_a_process_that_nobody_waits_for_any_more_ends_with_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "pid"
    monkeypatch.setattr("master.pools.worker_process.COMMAND", (sys.executable, "-c", SPEECHLESS, str(told)))
    async with pool(tmp_path, "") as workers:
        asked = asyncio.create_task(workers(job()))
        await until(lambda: workers.processes.ended == {"died": 1})  # the pool waits for its end now
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


UNREADY = """
import os, sys, time
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
time.sleep(60)
"""


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_process_that_is_being_started_ends_with_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    told = tmp_path / "pid"
    monkeypatch.setattr("master.pools.worker_process.COMMAND", (sys.executable, "-c", UNREADY, str(told)))
    async with pool(tmp_path, "") as workers:
        asked = asyncio.create_task(workers(job()))
        await until(lambda: told.exists() and told.read_text())
        if leaves:
            asked.cancel()
    with pytest.raises(asyncio.CancelledError if leaves else Unavailable):
        await asked
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


async def test_a_process_that_is_not_there_yet_ends_with_the_pool_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []
    is_started, may_go_on = asyncio.Event(), asyncio.Event()
    start = Worker.start

    async def start_slowly(*options: Any) -> Worker:
        started.append(await start(*options))
        is_started.set()
        await may_go_on.wait()
        return started[0]

    monkeypatch.setattr(Worker, "start", start_slowly)
    async with pool(tmp_path, "") as workers:
        asked = asyncio.create_task(workers(job()))
        await is_started.wait()
        closing = asyncio.create_task(workers.processes.close())
        await turns(20)
        assert not closing.done()
        may_go_on.set()
        await closing
        with pytest.raises(Unavailable, match="The master is stopping"):
            await asked
    assert started[0].process.returncode is not None
