"""What docs/where-to-add.md says a new thing takes: an example of it is added to a copy of the sources, in these files only, and used."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.documentation import ROOT
from tests.support.imports import PACKAGES
from tests.support.master_openapi import NOBODY
from tests.support.processes import clean_environment
from tests.support.started import started
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

TYPE = {
    "shared/types/dial.py": '''"""A dial, whose position is a line of a file."""

from __future__ import annotations

from ..ral import Ensure, Param, Property, Type


class Dial(Type, name="dial"):
    """Sets a dial."""

    path = Param(str, namevar=True, doc="The dial.")
    ensure = Ensure(str, values=("present", "absent"), default="present", doc="Whether it should be there.")
    position = Property(int, doc="Where it stands.")
''',
    "agent/providers/dial/__init__.py": '''"""Providers of the type `dial`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .line import Line

    return [Line()]
''',
    "agent/providers/dial/line.py": '''"""Dials that are files."""

from __future__ import annotations

from pathlib import Path

from shared.ral import Provider, State
from shared.types.dial import Dial


class Line(Provider[Dial], type=Dial):
    """Writes the position into the file."""

    async def retrieve(self, resource: Dial) -> State | None:
        path = Path(resource.path)
        return {"ensure": "present", "position": int(path.read_text())} if path.exists() else None

    async def flush(self, resource: Dial, now: State | None) -> None:
        Path(resource.path).write_text(str(resource.position))
''',
}
FUNCTION = '''

@function("twice", "String text")
def twice(context: Context, text: str) -> str:
    """Return a text two times."""
    return text * 2
'''


ENDPOINT = '''"""What a dial shows."""

from __future__ import annotations

from httpd.messages.responses import Response

from ..authorization.defaults import EVERYBODY, rule
from ..authorization.rules import Below
from .routes import EndpointCall, EndpointRoute, MasterAppOptions


async def shown(master: MasterAppOptions, call: EndpointCall) -> Response:
    """Return the number."""
    return Response(200, f"{call.target.segments[-1]} of {master.certname}".encode(), "text/plain")


RULE = rule("/puppet/v3/dials", Below("/puppet/v3/dials"), "find", EVERYBODY)
ROUTES = (EndpointRoute("/puppet/v3/dials/{dial}", {"GET": ""}, "text/plain", "What a dial shows.", respond=shown, rule=RULE),)
'''

COMMAND = '''"""Show where dials stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.process.cli import CommandOptions, flag
from shared.process.command import CommandSpec


@dataclass(frozen=True, slots=True)
class DialOptions(CommandOptions):
    """The command line of `puppet dial`."""

    loud: bool = flag("in capitals")


@CommandSpec("dial", DialOptions, actions={"show NAME": "print where one stands"}).main
def main(options: DialOptions, flags: dict[str, Any]) -> int:
    text = f"{options.arguments[1]} stands at 7"
    print(text.upper() if options.loud else text)
    return 0
'''

CHIME = """

async def chime() -> None:
    try:
        Path({rung!r}).touch()
        await asyncio.Event().wait()
    finally:
        Path({ended!r}).touch()
"""
COLUMN = '''"""What reports say of chimes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "005"
down_revision = "004"


def upgrade() -> None:
    """Add the column."""
    op.add_column("reports", sa.Column("chime", sa.Text()))
'''
STORE = """
import asyncio, json, sys

from store.archive.payloads import report_payload
from store.commands.commands import ReceivedCommand
from store.commands.payloads import parse_payload
from store.database.engine import Database
from store.queries.questions import Question
from store.queries.service import QueryService
from store.writing.writer import DatabaseWriter


async def main(address, payload):
    database = Database.open(address)
    await database.migrate()
    await DatabaseWriter(database).write([ReceivedCommand(parse_payload("store report", 8, payload.encode(), 0), 0)])
    answer = await QueryService(database).answer(Question("reports", json.loads(sys.argv[3])))
    print(json.dumps([report_payload(row).get("chime", "no such field") async for rows in answer.batches for row in rows]))
    await database.close()


asyncio.run(main(*sys.argv[1:3]))
"""
REPORT = {
    **dict.fromkeys(("environment", "status", "noop", "transaction_uuid", "cached_catalog_status", "catalog_uuid", "code_id")),
    **dict.fromkeys(("corrective_change", "noop_pending", "producer", "logs", "metrics")),
    "certname": "web1",
    "configuration_version": "1",
    "puppet_version": "8.0.0",
    "report_format": 12,
    "resources": [],
    **dict.fromkeys(("start_time", "end_time", "producer_timestamp"), "2026-01-31T00:00:00Z"),
}


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the sources, and its `puppet`."""

    root: Path

    def add(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            assert not path.exists()
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def puppet(self, *words: str, code: int = 0) -> str:
        places = ["--confdir", str(self.root / "conf"), "--vardir", str(self.root / "var")]
        return self.run("bunraku", *words, *places, code=code)

    def run(self, module: str, *words: str, code: int = 0) -> str:
        command = [str(self.python()), "-I", "-m", module, *words]
        done = subprocess.run(command, env=clean_environment(), cwd=self.root, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def python(self) -> Path:
        """Return a program that is called as `python -I -m MODULE …`, and finds the modules of the copy."""
        program = self.root / "python"
        program.write_text(
            f"#!{sys.executable} -I\n"
            "import runpy, sys\n"
            f"sys.path.insert(0, {str(self.root)!r})\n"
            "module, sys.argv[1:] = sys.argv[3], sys.argv[4:]\n"
            "runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
        )
        program.chmod(0o755)
        return program


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.pyc.*"))  # what is being written
    yield Copy(tmp_path)


def test_a_type_is_its_file_and_the_folder_of_its_providers(copy: Copy, tmp_path: Path) -> None:
    copy.add(TYPE)
    dial = tmp_path / "volume"
    words = ("apply", "--detailed-exitcodes", "-e", f"dial {{ '{dial}': position => 7 }}")
    assert "created" in copy.puppet(*words, code=2) and dial.read_text() == "7"
    assert "created" not in copy.puppet(*words)
    assert "Sets a dial" in copy.puppet("describe", "dial")


def test_a_function_is_a_function_in_the_file_of_its_topic(copy: Copy) -> None:
    topic = copy.root / "language/functions/strings.py"
    topic.write_text(topic.read_text() + FUNCTION)
    assert "Notice: Scope(Class[main]): abab" in copy.puppet("apply", "-e", "notice(twice('ab'))")


def test_a_metaparameter_is_a_line_of_the_class_of_all_and_its_effect(copy: Copy) -> None:
    copy.replace("shared/ral/metaparams.py", "    stage = Param(", '    chime = Param(str, meta=True, doc="A sound.")\n    stage = Param(')
    copy.replace("agent/providers/notify/log.py", 'text, "message"', "f'{resource.chime}: {text}', \"message\"")
    manifest = "define d() { notify { 'open': withpath => true } }  d { 'x': chime => 'ding' }"
    assert "ding: open" in copy.puppet("apply", "-e", manifest)
    assert "- **chime**" in copy.puppet("describe", "--meta", "notify")


def test_a_setting_is_a_line_of_the_class_of_its_program(copy: Copy) -> None:
    chime = '    chime: Duration = setting("1h", ge=0, doc="Seconds between two chimes.")\n'
    copy.replace("shared/settings/agent.py", "    onetime: Flag", f"{chime}    onetime: Flag")
    assert copy.puppet("config", "print", "chime", "--section", "agent") == "3600\n"
    assert copy.puppet("config", "print", "chime", "--section", "agent", "--chime", "5m") == "300\n"


def test_a_command_is_its_file(copy: Copy, tmp_path: Path) -> None:
    copy.add({"bunraku/commands/dial.py": COMMAND})
    assert copy.puppet("dial", "show", "volume", "--loud") == "VOLUME STANDS AT 7\n"
    assert re.search("^  dial +Show where dials stand$", copy.puppet("help"), re.MULTILINE)
    copy.run("bunraku.commandlines", str(tmp_path / "share"), "2026-01-31")
    assert "print where one stands" in (tmp_path / "share/man/man1/bunraku-puppet-dial.1").read_text()
    assert "-l loud -d 'in capitals'" in copy.puppet("completion", "fish")


def test_a_field_of_reports_is_declared_for_queries_the_database_and_the_command(copy: Copy) -> None:
    (copy.root / "exercise.py").write_text(STORE)
    words = ("exercise", f"sqlite:///{copy.root / 'store.sqlite'}")
    assert copy.run(*words, json.dumps(REPORT), "null") == '["no such field"]\n'
    copy.replace("store/queries/schema/entities.py", '_member("logs"', 'Field("chime"),\n            _member("logs"')
    copy.replace("store/database/tables.py", '    Column("logs", PackedJson)', '    Column("chime", Text),\n    Column("logs", PackedJson)')
    copy.add({"store/database/migrations/versions/005_chimes.py": COLUMN})
    copy.replace("store/commands/commands.py", "    events: Sequence", "    chime: str | None\n    events: Sequence")
    copy.replace("store/commands/report_payloads.py", '| {"job_id"', '| {"chime", "job_id"')
    copy.replace("store/commands/report_payloads.py", "        events=", '        chime=fields.optional_text("chime"),\n        events=')
    report = json.dumps({**REPORT, "certname": "web2", "chime": "ding"})
    assert copy.run(*words, report, '["=", "chime", "ding"]') == '["ding"]\n'
    assert json.loads(copy.run(*words, report, "null")) in (["ding", None], [None, "ding"])


def test_a_background_task_is_its_name_and_its_start(copy: Copy) -> None:
    names = "master/observability/longtasks.py"
    copy.replace(names, "\nMASTER_TASKS = (", '\nCHIME = "chime"\nMASTER_TASKS = (\n    SupervisedTask(CHIME),')
    start = "    supervisor.start("
    copy.replace("master/wiring.py", f"{start}WATCH_HEALTH", f"{start}CHIME, chime)\n{start}WATCH_HEALTH")
    copy.replace("master/wiring.py", "    DEPLOY,\n", "    CHIME,\n    DEPLOY,\n")
    rung, ended = copy.root / "rung", copy.root / "ended"
    with (copy.root / "master/wiring.py").open("a") as file:
        file.write(CHIME.format(rung=str(rung), ended=str(ended)))
    with started(copy.root / "site", python=str(copy.python())) as site:
        wait_until(rung.exists)
        assert site.process.stop() == 0
    assert ended.exists()


@pytest.mark.parametrize(("rule", "status", "allowed"), [("RULE", 200, "any certificate"), ("None", 403, NOBODY)])
def test_an_endpoint_is_its_file(copy: Copy, rule: str, status: int, allowed: str) -> None:
    copy.add({"master/endpoints/dial.py": ENDPOINT.replace("rule=RULE", f"rule={rule}")})
    with started(copy.root / "site", python=str(copy.python())) as site:
        answers = {name: site.ask("GET", "/puppet/v3/dials/volume", name=name) for name in ("agent1", None)}
        assert site.ask("PUT", "/puppet/v3/dials/volume").status == 405
    assert (answers["agent1"].status, answers[None].status) == (status, 403)
    assert answers["agent1"].body.startswith(b"volume of localhost") is (status == 200)
    place = copy.root / "tests/support/master_openapi.py"
    place.parent.mkdir(parents=True)
    shutil.copy(ROOT / place.relative_to(copy.root), place)
    described = plainyaml.loads(copy.run("tests.support.master_openapi").encode())["paths"]["/puppet/v3/dials/{dial}"]["get"]
    assert (described["summary"], described["x-allowed"]) == ("What a dial shows.", allowed)
