"""A catalog in the bytes of the process that compiled it says the same as one that is read and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.directories import EnvironmentSettings
from language.codegen.codecache import CodeCache
from master.catalogs.compiler_terminus import PreparedCatalog
from master.pools.compile_worker import CompileWorker
from shared.data import plainjson
from shared.models.catalog import CATALOG
from shared.wire.dialects import LEGACY, MODERN
from tests.support.compile_jobs import catalog_job

PLAIN = [
    "",
    "notify { 'a': } -> file { '/b': ensure => file, content => \"é\\n\", mode => '0644', tag => ['x', 'y'] }",
    "class c($p = undef) { notify { 'a': message => [1, 1.5, true, { 'k' => undef }, 'text'] } }\ninclude c",
    "define d($x) { exec { \"/bin/true ${x}\": refreshonly => true } }\nd { 'one': x => 1, subscribe => Notify['n'] }\nnotify { 'n': }",
    "@notify { 'virtual': }\n@@notify { 'exported': }\nnotify { 's': message => Sensitive('secret') }",
    "notify { 'a': message => 'the text __ptype alone' }",
]
RICH = [
    "notify { 'a': message => [Sensitive('secret'), default] }",
    "notify { 'a': message => Timestamp('2026-01-01T00:00:00 UTC') }",
    "notify { 'a': message => [{ 'deep' => /a.*b/ }] }",
    "file { '/a': content => Binary('eA==') }",
]


def compiled(folder: Path, manifest: str) -> PreparedCatalog:
    """Return the catalog of a manifest as the compiler terminus has it."""
    (folder / "production" / "manifests").mkdir(parents=True)
    (folder / "production" / "manifests" / "site.pp").write_text(manifest)
    worker = CompileWorker(EnvironmentSettings((str(folder),)), CodeCache())
    job = catalog_job("n", {})
    made = worker.answer(job, lambda entry: None)
    return PreparedCatalog(name="n", environment="production", text=made.text, is_rich=made.is_rich)


@pytest.mark.parametrize("manifest", [*PLAIN, *RICH])
@pytest.mark.parametrize("name", ["rich_data_json", "json", "pson"])
def test_every_form_says_what_the_catalog_would_say_when_it_was_read_first(tmp_path: Path, manifest: str, name: str) -> None:
    catalog, form = compiled(tmp_path, manifest), MODERN.formats[name]
    read_first = CATALOG.model.from_data(plainjson.loads(bytes(catalog.text)))
    assert form.load(MODERN.dump(CATALOG, catalog, form)) == form.load(form.dump(read_first.to_form(MODERN, form)))


@pytest.mark.parametrize("manifest", PLAIN[:-1])
@pytest.mark.parametrize("name", ["rich_data_json", "json", "pson"])
def test_a_catalog_without_rich_values_is_sent_as_it_was_made(tmp_path: Path, manifest: str, name: str) -> None:
    catalog = compiled(tmp_path, manifest)
    assert catalog.encoded(MODERN, MODERN.formats[name]) is catalog.text


@pytest.mark.parametrize("manifest", RICH)
def test_rich_values_are_sent_only_to_whoever_reads_them(tmp_path: Path, manifest: str) -> None:
    catalog = compiled(tmp_path, manifest)
    forms = ["rich_data_json", "json", "pson", "yaml"]
    assert [catalog.encoded(MODERN, MODERN.formats[name]) is not None for name in forms] == [True, False, False, False]
    assert catalog.encoded(LEGACY, LEGACY.formats["pson"]) is None
