"""Sensitive and Deferred parameters of exported resources: kept sealed in a master's own store, missed by name behind a PuppetDB."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from environments.directories import EnvironmentSettings
from environments.files.export_keys import REDACTED, ExportedParameter, ExportKeys
from language.codegen.codecache import CodeCache
from language.log import LogEntry
from master.pools.compile_worker import CompileWorker
from shared.errors import CompileError, ConfigError, EvaluationError
from tests.support.compile_jobs import catalog_job
from tests.support.stored_catalogs import stored_data

SITE = """\
define acct(Any $pw, Any $more = undef) {
  file { "/srv/${title}": content => $pw }
}
node 'web1' {
EXPORTS
}
node default {
  Acct <<| |>>
  File <<| |>>
}
"""
SECRET = {"__ptype": "Sensitive", "__pvalue": "canary"}
CALL = {"__ptype": "Deferred", "name": "sprintf", "arguments": ["%s", "u"]}

EXPORTS = [
    ("@@acct { 'x': pw => Sensitive('canary') }", REDACTED, SECRET),
    ("@@acct { 'x': pw => Sensitive({'a' => ['canary', 1, undef]}) }", REDACTED, SECRET | {"__pvalue": {"a": ["canary", 1, None]}}),
    ("@@acct { 'x': pw => {'a' => Sensitive('canary')} }", {"a": REDACTED}, {"a": SECRET}),
    (
        "@@acct { 'x': pw => [1, Sensitive(/canary/)] }",
        [1, REDACTED],
        [1, SECRET | {"__pvalue": {"__ptype": "Regexp", "__pvalue": "canary"}}],
    ),
    ("@@acct { 'x': pw => Deferred('sprintf', ['%s', 'u']) }", "Deferred({'name' => 'sprintf', 'arguments' => ['%s', 'u']})", CALL),
    (
        "@@acct { 'x': pw => Deferred('unwrap', [Sensitive('canary')]) }",
        "Deferred({'name' => 'unwrap', 'arguments' => [Sensitive [value redacted]]})",
        {"__ptype": "Deferred", "name": "unwrap", "arguments": [SECRET]},
    ),
    ("@@acct { 'x': pw => [Deferred('f')] }", ["Deferred({'name' => 'f'})"], [{"__ptype": "Deferred", "name": "f"}]),
    (
        "@@acct { 'x': pw => Sensitive({default => Timestamp('2026-01-02T03:04:05Z'), 2 => [Binary('AAAA'), SemVer('1.2.3')]}) }",
        REDACTED,
        {
            "__ptype": "Sensitive",
            "__pvalue": {
                "__ptype": "Hash",
                "__pvalue": [
                    {"__ptype": "Default"},
                    {"__ptype": "Timestamp", "__pvalue": "2026-01-02T03:04:05.000000000 UTC"},
                    2,
                    [{"__ptype": "Binary", "__pvalue": "AAAA"}, {"__ptype": "SemVer", "__pvalue": "1.2.3"}],
                ],
            },
        },
    ),
]


class Exchange:
    """Masters of one site, what their store has, and what they log."""

    def __init__(self, root: Path, exports: str, *, own_store: bool = True, **settings: Any) -> None:
        self.root = root
        self.key = root / "private_keys/exported.key"
        self.rows: list[dict[str, Any]] = []
        self.logs: list[LogEntry] = []
        self.settings = settings
        self.own_store = own_store
        if own_store:
            ExportKeys(self.key).create()
        self.write(exports)
        self.worker = self.master()

    def write(self, exports: str) -> None:
        folder = self.root / "environments/production/manifests"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "site.pp").write_text(SITE.replace("EXPORTS", exports))

    def master(self) -> CompileWorker:
        """Return a compiling process that has just begun."""
        settings = EnvironmentSettings(
            (str(self.root / "environments"),),
            compiler={"strict": "warning", "storeconfigs": True},
            export_keys=str(self.key) if self.own_store else "",
            **self.settings,
        )
        return CompileWorker(settings, CodeCache(), memo=1 << 22, ask_puppetdb=self.answers)

    def log(self, entry: LogEntry) -> None:
        """Keep what is logged of exports."""
        if "has no return_type" not in entry.message:
            self.logs.append(entry)

    def answers(self, questions: Sequence[Any]) -> list[bytes]:
        """Answer each collector with the exported resources of its type."""
        return [json.dumps([row for row in self.rows if row["type"] == question["query"][1][2]]).encode() for question in questions]

    def compile(self, certname: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the agent's catalog and the stored one."""
        compiled = self.worker.answer(catalog_job(certname, {}, is_stored=True), self.log)
        return json.loads(compiled.body), stored_data(compiled.stored)

    def export(self) -> dict[str, Any]:
        """Compile the node that exports, and store its catalog; return that."""
        _, stored = self.compile("web1")
        self.rows = [
            {"certname": stored["certname"], "resource": "h", **resource} for resource in stored["resources"] if resource["exported"]
        ]
        return stored

    def collected(self, ref: str) -> dict[str, Any]:
        """Return a resource of the catalog of a node that collects."""
        catalog, stored = self.compile("col1")
        assert "canary" not in json.dumps(stored)
        return next(resource for resource in catalog["resources"] if f"{resource['type']}[{resource['title']}]" == ref)


@pytest.mark.parametrize(("export", "shown", "collected"), EXPORTS, ids=[each[0][11:50] for each in EXPORTS])
def test_what_is_exported_is_collected_as_it_was_and_everybody_else_sees_a_text(
    tmp_path: Path, export: str, shown: Any, collected: Any
) -> None:
    exchange = Exchange(tmp_path, export)
    stored = exchange.export()
    (row,) = exchange.rows
    assert row["parameters"] == {"pw": shown} and list(row["sealed"]) == ["pw"]
    assert "canary" not in json.dumps(stored) and "redacted:pw" not in row["tags"]
    acct = exchange.collected("Acct[x]")
    is_secret = "sensitive_parameters" in acct
    assert ({**SECRET, "__pvalue": acct["parameters"]["pw"]} if is_secret else acct["parameters"]["pw"]) == collected
    if export == EXPORTS[0][0]:
        file = exchange.collected("File[/srv/x]")
        assert (file["parameters"]["content"], file["sensitive_parameters"]) == ("canary", ["content"])
    assert exchange.logs == []


def test_a_file_in_bytes_is_collected_with_its_bytes(tmp_path: Path) -> None:
    data = tmp_path / "secret"
    data.write_bytes(b"canary \xff\x00")
    exchange = Exchange(tmp_path, f"@@file {{ '/srv/f': content => Sensitive(file('{data}')) }}")
    exchange.export()
    content = exchange.collected("File[/srv/f]")["parameters"]["content"]
    assert base64.b64decode(content["__pvalue"]) == data.read_bytes()


def test_a_secret_name_is_no_alias(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, "@@file { 'x': path => Sensitive('/canary') }")
    assert "canary" not in json.dumps(exchange.export())
    assert exchange.collected("File[x]")["parameters"]["path"] == "/canary"


def test_an_unchanged_secret_is_stored_as_the_same_text_and_a_changed_one_is_noticed(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, EXPORTS[0][0])
    first = exchange.export()["resources"]
    exchange.worker = exchange.master()
    assert exchange.export()["resources"] == first
    assert exchange.collected("File[/srv/x]") == exchange.collected("File[/srv/x]")
    assert exchange.worker.memo.hits == 1
    exchange.write("@@acct { 'x': pw => Sensitive('canary two') }")
    collector, exchange.worker = exchange.worker, exchange.master()
    exchange.export()
    exchange.write(EXPORTS[0][0])  # the collector's own code stays as it was
    exchange.worker = collector
    assert exchange.collected("File[/srv/x]")["parameters"]["content"] == "canary two"


MOVES: list[Callable[[dict[str, Any]], Any]] = [
    lambda row: row.update(certname="web2"),
    lambda row: row.update(title="y"),
    lambda row: row.update(sealed={"more": row["sealed"]["pw"]}, parameters={"more": REDACTED}),
    lambda row: row["sealed"].update(pw=row["sealed"]["pw"][:-8] + "AAAAAAA="),
    lambda row: row["sealed"].update(pw=row["sealed"]["pw"] + "%"),
    lambda row: row["sealed"].update(pw=row["sealed"]["pw"][:9]),
    lambda row: row["sealed"].update(pw=7),
]


@pytest.mark.parametrize("move", range(len(MOVES)))
def test_PDB_12_what_is_sealed_opens_only_where_its_master_sealed_it(tmp_path: Path, move: int) -> None:
    exchange = Exchange(tmp_path, EXPORTS[0][0])
    exchange.export()
    (row,) = exchange.rows
    MOVES[move](row)
    with pytest.raises(EvaluationError) as failed:
        exchange.compile("col1")
    parameter = f"Acct[{row['title']}]['{next(iter(row['sealed']))}'] of {row['certname']}"
    assert parameter in failed.value.message and str(exchange.key) in failed.value.message
    assert failed.value.where is not None and failed.value.where.line == 8
    assert "canary" not in str(failed.value)


def other_key(path: Path) -> None:
    path.unlink()
    ExportKeys(path).create()


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda path: path.unlink(), "No such file or directory"),
        (lambda path: path.write_text(""), "it has no line, or one that is not a key (64 bytes in base64)"),
        (lambda path: path.write_text("AAAA\n"), "one that is not a key"),
        (lambda path: path.write_text("no key\n"), "one that is not a key"),
        (other_key, "which is not in"),
    ],
)
def test_a_lost_key_is_an_error_that_names_resource_parameter_and_file(tmp_path: Path, harm: Callable[[Path], object], why: str) -> None:
    exchange = Exchange(tmp_path, EXPORTS[0][0])
    exchange.export()
    harm(exchange.key)
    with pytest.raises(CompileError) as failed:
        exchange.compile("col1")
    assert "Acct[x]['pw'] of web1" in failed.value.message and str(exchange.key) in failed.value.message
    assert why in failed.value.message
    assert failed.value.hint and failed.value.node == "col1"


def test_no_secret_is_exported_without_a_key(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, EXPORTS[0][0])
    exchange.key.unlink()
    with pytest.raises(CompileError) as failed:
        exchange.export()
    assert "Acct[x]['pw'] of web1" in failed.value.message and failed.value.node == "web1"


def test_a_new_key_in_front_seals_and_the_old_one_still_opens(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, EXPORTS[0][0])
    exchange.export()
    (old,) = exchange.rows
    other = ExportKeys(tmp_path / "other.key")
    other.create()
    exchange.key.write_bytes(other.path.read_bytes() + exchange.key.read_bytes())
    assert exchange.collected("File[/srv/x]")["parameters"]["content"] == "canary"
    exchange.worker = exchange.master()
    exchange.export()
    assert exchange.rows[0]["sealed"] != old["sealed"]
    assert other.open(ExportedParameter("web1", "Acct", "x", "pw"), exchange.rows[0]["sealed"]["pw"]) == SECRET


@pytest.mark.slow
def test_a_value_of_any_size_that_was_sealed_is_opened(tmp_path: Path) -> None:
    keys, parameter = ExportKeys(tmp_path / "exported.key"), ExportedParameter("web1", "Acct", "x", "pw")
    keys.create()
    value = [[]] * 300_000
    assert keys.open(parameter, keys.seal(parameter, value)) == value


def test_a_key_is_made_once_for_the_service_alone(tmp_path: Path) -> None:
    keys = ExportKeys(tmp_path / "private_keys/exported.key")
    keys.create()
    made = keys.path.read_bytes()
    keys.create()
    assert keys.path.read_bytes() == made and keys.path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"Could not create .*/file/exported.key"):
        ExportKeys(tmp_path / "file/exported.key").create()


@pytest.mark.parametrize("export", [each[0] for each in EXPORTS], ids=[each[0][11:50] for each in EXPORTS])
def test_behind_a_puppetdb_who_exports_is_warned_and_who_collects_fails_by_name(tmp_path: Path, export: str) -> None:
    exchange = Exchange(tmp_path, export, own_store=False)
    for _ in range(2):  # the second time from memory
        stored = exchange.export()
        (warning,) = exchange.logs
        assert warning.level == "warning" and "Acct[x]['pw'] is exported with a Sensitive or Deferred value" in warning.message
        assert warning.where is not None and warning.where.line == 5
        exchange.logs.clear()
    assert exchange.worker.memo.hits == 1
    assert "sealed" not in json.dumps(stored) and "canary" not in json.dumps(stored)
    with pytest.raises(EvaluationError) as failed:
        exchange.compile("col1")
    assert failed.value.message.startswith("The exported Acct[x]['pw'] of web1 is Sensitive or Deferred, and the store has no value of it")
    assert failed.value.where is not None and failed.value.where.line == 8


def test_what_came_from_an_archive_fails_by_name(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, EXPORTS[2][0])
    exchange.export()
    del exchange.rows[0]["sealed"]
    with pytest.raises(EvaluationError, match=r"The exported Acct\[x\]\['pw'\] of web1 is Sensitive or Deferred"):
        exchange.compile("col1")


def test_a_deferred_is_no_text_for_who_collects_it_where_catalogs_have_no_rich_data(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, EXPORTS[4][0], rich_data=False)
    exchange.export()
    with pytest.raises(EvaluationError, match=r"The exported Acct\[x\]\['pw'\] of web1 is Sensitive or Deferred"):
        exchange.compile("col1")


def test_a_secret_that_holds_a_type_fails_by_name(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, "@@acct { 'x': pw => Sensitive(Integer) }")
    exchange.export()
    with pytest.raises(EvaluationError, match=r"Acct\[x\]\['pw'\] of web1: A value of the kind Pcore::IntegerType cannot be collected"):
        exchange.compile("col1")


def test_texts_that_only_mention_a_redaction_are_collected(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path, "@@file { '/f': content => \"pw=${Sensitive('canary')}\" }")
    exchange.export()
    assert exchange.collected("File[/f]")["parameters"]["content"] == "pw=Sensitive [value redacted]"
