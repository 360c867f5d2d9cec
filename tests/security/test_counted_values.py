"""Whatever parses foreign JSON counts its values before it builds them, wherever in the code it is."""

from __future__ import annotations

import ast
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.facts import external
from agent.providers.concat_file import pieces
from environments.hiera.data.files import parse_json
from language.functions.stdlib.documents import from_json
from master.endpoints.preview import PreviewQuestion
from master.pools.catalog_schema import parse_catalog_body
from shared.data import plainjson
from shared.errors import PuppetError
from shared.wire.dialects import LEGACY, MODERN
from store.archive.reading import load_json as load_of_archive
from store.commands.commands import PayloadRejected
from store.commands.payloads import parse_payload
from store.commands.submission import SubmissionRefused, read_submission
from store.endpoints.queries.querytext import read_query
from store.jsontext import load_json
from tests.support.imports import PACKAGES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

DIRECT = {  # who parses JSON without counting its values, and why it may
    "agent/providers/concat_file/pieces.py": "counted one line before",
    "agent/providers/package/npm.py": "what npm printed",
    "agent/run/lock.py": "the agent's own file",
    "agent/servers/websources.py": "the agent's own file",
    "master/checks/account.py": "what a process of ours printed",
    "language/functions/stdlib/__init__.py": "the metadata of a module",
    "language/functions/stdlib/documents.py": "counted one line before",
    "language/syntax/checker/syntaxes.py": "a heredoc of a manifest",
    "environments/hiera/data/files.py": "counted two lines before",
    "shared/data/hocon.py": "one string",
    "shared/data/plainjson.py": "counts",
    "store/jsontext.py": "counts",
    "store/endpoints/queries/querytext.py": "counted before",
    "store/process/child.py": "the settings that the master passes on",
    "master/checks/state_inspection.py": "the settings that the master passes on",
    "store/process/inspection.py": "the settings that the master passes on",
    "store/queries/pql/parser.py": "one string",
    "shared/queue/segments.py": "the queue's own file",
}

TRUSTED = {  # who reads what was counted before it was stored or passed on, or what a server of the site's answers
    "bunraku/stores/access.py": "rows of the store that the command asks",
    "master/catalogs/compiler_terminus.py": "a catalog of ours",
    "master/catalogs/static.py": "a catalog of ours",
    "environments/files/export_keys.py": "what a master of the site has sealed",
    "environments/ruby/recording.py": "what this process has recorded, or a master of the site has sealed",
    "environments/store_questions.py": "rows of the store that the master has",
    "master/dependencies/records.py": "what a master of the site has sealed",
    "master/pools/frames.py": "what a process of ours wrote",
    "master/pools/parse_pool.py": "what a process of ours wrote",
    "master/preview/pool.py": "what a process of ours wrote",
    "master/puppetdb/client.py": "rows of the store that the master has",
    "master/puppetdb/own_store.py": "rows of the store that the master has",
    "master/rollouts/watch.py": "a catalog of ours",
    "master/wiring.py": "a catalog of ours",
    "shared/data/plainjson.py": "is called by those that count",
    "store/database/columns.py": "what is stored",
    "store/database/json_values.py": "what is stored",
    "store/database/writers.py": "what is stored",
    "store/jsontext.py": "is called by those that count",
    "store/moving/move.py": "what is stored",
    "store/moving/rows.py": "what is stored",
    "store/writing/catalogs.py": "what is stored",
    "store/writing/facts.py": "what is stored",
}


def calls(*names: str) -> Iterator[str]:
    """Yield the files in which one of these is named, `json.loads` or `load_stored`."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text("utf-8")
            for node in ast.walk(ast.parse(text if any(name.rpartition(".")[2] in text for name in names) else "")):
                if (isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).removeprefix("plainjson.") in names) or (
                    isinstance(node, ast.ImportFrom) and node.module == "json"
                ):
                    yield str(path.relative_to(ROOT))


def test_PRS_13_json_is_read_by_the_functions_that_count_its_values() -> None:
    assert set(calls("json.loads", "json.load", "orjson.loads", "json.JSONDecoder", "model_validate_json")) == set(DIRECT)
    assert set(calls("loads_trusted", "load_stored")) == set(TRUSTED)


def submission_in_the_old_form(body: bytes) -> Any:
    return read_submission({}, {}, body, limit=2**30)


PARSERS: dict[str, Callable[[bytes], Any]] = {
    "JSON": plainjson.loads,
    "PSON": plainjson.loads_pson,
    "the store": load_json,
    "an archive": load_of_archive,
    "a query": lambda body: read_query(body.decode()),
    "a command": lambda body: parse_payload("replace facts", 5, body, 0),
    "a catalog": lambda body: parse_payload("replace catalog", 9, body, 0),
    "a report": lambda body: parse_payload("store report", 8, body, 0),
    "the old form of a command": submission_in_the_old_form,
    "a v4 catalog request": parse_catalog_body,
    "a question for a preview": lambda body: PreviewQuestion.of(plainjson.loads(body)),
    "parsejson": lambda body: from_json(body.decode()),
    "Hiera data": parse_json,
    "an external fact": lambda body: external._json(body.decode()),
    "a piece of concat_file": lambda body: pieces._read(pieces.Piece("1", "x", body.decode()), "json"),
} | {f"{form.name} of {dialect.name}": form.load for dialect in (LEGACY, MODERN) for form in dialect.formats.values() if "son" in form.name}

MANY = {
    "lists": b"[]",
    "objects": b"{}",
    "strings": b'""',
    "numbers": b"0",
    "numbers after escapes": b'"\\\\\\"", 0,0,0,0',
    "small lists": b"[0]",
    "deep lists": b"[[[[[[0]]]]]]",
    "small objects": b'{"":0}',
}


@pytest.mark.parametrize("values", MANY)
@pytest.mark.parametrize("parser", PARSERS)
def test_PRS_13_more_values_than_the_size_allows_are_refused_before_they_are_built(parser: str, values: str) -> None:
    body = b'{"certname": "a", "values": {"x": [' + b",".join([MANY[values]] * 280_000) + b"]}}"
    tracemalloc.start()
    try:
        with pytest.raises((PuppetError, ValueError, PayloadRejected, SubmissionRefused)) as refused:
            PARSERS[parser](body)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(body) + 2**20
    finally:
        tracemalloc.stop()
    assert parser == "the old form of a command" or "one more for each 16 bytes" in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(["," * 3_000_000, "[{" * 1_000_000]),
        json.dumps(['"\\,[{' * 500_000]),
        json.dumps({f"key {number}": "[1, 2, 3]" for number in range(250_000)}),
        json.dumps([0] * 199_000),
    ],
    ids=["commas", "escapes", "members", "few"],
)
def test_what_stands_in_strings_is_no_value(body: str) -> None:
    plainjson.check_values(body.encode())
