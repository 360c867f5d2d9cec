"""Every indirection of a running master: the verbs it has, and what it says to the others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pair import NAME, Pair, client_of
from tests.support.raw_master import RawAnswer

pytestmark = pytest.mark.slow

OPEN = "path /\nauth any\nallow *\n"
JSON = {"Content_Type": "text/pson", "Accept": "pson, yaml, s, raw"}

SUPPORTED = [
    ("GET", f"node/{NAME}", 200),
    ("GET", f"catalog/{NAME}", 200),
    ("GET", f"facts/{NAME}", 200),
    ("GET", "facts_search/x?facts.kernel=Linux", 200),
    ("GET", "file_metadata/modules/stage/plain.txt", 200),
    ("GET", "file_metadatas/modules/stage/tree?recurse=true", 200),
    ("GET", "file_content/modules/stage/plain.txt", 200),
    ("GET", "file_bucket_file/md5/d41d8cd98f00b204e9800998ecf8427e", 404),
    ("HEAD", "file_bucket_file/md5/d41d8cd98f00b204e9800998ecf8427e", 404),
    ("GET", "certificate/ca", 200),
    ("GET", "certificates/x", 200),
    ("GET", f"certificate_request/{NAME}", 404),
    ("GET", "certificate_requests/x", 400),  # there are none, which the reference calls an error
    ("GET", f"certificate/{NAME}", 200),
    ("GET", "certificate_revocation_list/ca", 200),
    ("GET", f"certificate_status/{NAME}", 200),
    ("GET", "certificate_statuses/x", 200),
    ("GET", "resource_type/stage", 200),
    ("GET", "resource_type/stage::nope", 404),
    ("GET", "resource_types/*", 200),
    ("GET", "resource_types/^sta?kind=class", 200),
    ("GET", "resource_types/nope", 404),
    ("GET", "resource_types/*?kind=klass", 400),
    ("GET", "resource_types/%28", 400),
    ("GET", "status/x", 200),
    ("DELETE", f"report/{NAME}", 200),
    ("DELETE", f"facts/{NAME}", 200),
]
REFUSED = [
    ("PUT", f"catalog/{NAME}", 400),
    ("DELETE", f"catalog/{NAME}", 400),
    ("GET", "catalogs/x", 400),
    ("PUT", f"node/{NAME}", 400),
    ("DELETE", f"node/{NAME}", 400),
    ("GET", f"report/{NAME}", 400),
    ("GET", "reports/x", 400),
    ("GET", "file_contents/modules/stage", 400),
    ("DELETE", "file_metadata/modules/stage/plain.txt", 400),
    ("GET", "file_bucket_files/x", 400),
    ("DELETE", "file_bucket_file/md5/d41d8cd98f00b204e9800998ecf8427e", 400),
    ("PUT", "resource_type/stage", 400),
    ("DELETE", "resource_type/stage", 400),
    ("GET", "resource/user/root", 400),
    ("GET", "resources/user", 400),
    ("PUT", "resource/user/root", 400),
    ("DELETE", "resource/user/root", 400),
    ("PUT", "status/x", 400),
    ("GET", "statuses/x", 400),
    ("GET", "key/ca", 404),
    ("GET", "keys/x", 404),
    ("GET", "run/x", 400),
    ("PUT", "run/x", 400),
    ("GET", "bogus/x", 400),
    ("GET", "bogu/x", 400),
    ("PATCH", f"node/{NAME}", 400),
    ("PUT", "nodes/x", 400),
]
EXPLOITS = [
    "::..::..::tmp::exploit",
    "..::x",
    "%2e%2e%2fx",
    "%252e%252e%252fx",
    "::",
    "a%20b",
    "x" * 3000,
    "web%00",
]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Pair]:
    """A master that lets everybody do everything, and an agent that has run once."""
    pair = Pair(tmp_path)
    pair.write("auth.conf", OPEN)
    async with pair.mastered():
        assert (await pair.run(scheme="a")).code == 2
        yield pair


async def asked(pair: Pair, method: str, target: str) -> RawAnswer:
    connection = await client_of(pair)
    try:
        body = b"{}" if method in ("PUT", "PATCH") else b""
        return await connection.ask(method, target, body, **JSON)
    finally:
        await connection.close()


async def test_each_indirection_answers_its_verbs_and_refuses_the_others(opened: Pair) -> None:
    expected = {f"{method} {path}": status for method, path, status in SUPPORTED + REFUSED}
    found = {}
    for method, path, _ in SUPPORTED + REFUSED:
        answer = await asked(opened, method, f"/production/{path}")
        found[f"{method} {path}"] = answer.status
        assert answer.headers["x-puppet-version"].startswith("3.8")
        assert "Traceback" not in answer.text
    assert found == expected


async def test_what_is_refused_is_named(opened: Pair) -> None:
    for path, part in (
        ("bogus/x", "Could not find indirection 'bogu'"),
        ("run/x", "Could not find indirection 'run'"),
        ("key/ca", "No handler for key"),
        ("resource/user/root", "providers, which a master does not load"),
        ("resource_types/*?kind=klass", "Unrecognized kind filter: 'klass'"),
    ):
        assert part in (await asked(opened, "GET", f"/production/{path}")).text


async def test_a_definition_comes_with_file_line_and_parameters(opened: Pair) -> None:
    opened.write("code/environments/production/modules/stage/manifests/sub.pp", "# Doc.\ndefine stage::sub($a, $b = 1 + 2) { }\n")
    answer = await asked(opened, "GET", "/production/resource_type/stage::sub")
    data = json.loads(answer.body)
    assert data.pop("file").endswith("modules/stage/manifests/sub.pp")
    assert data == {"name": "stage::sub", "kind": "defined_type", "line": 2, "doc": "Doc.", "parameters": {"a": None, "b": "1 + 2"}}
    modern = await asked(opened, "GET", "/puppet/v3/resource_types/stage?environment=production")
    assert [each["name"] for each in json.loads(modern.body)] == ["stage", "stage::sub"]


@pytest.mark.parametrize("scheme", ["/production/resource_type/{}", "/puppet/v3/resource_type/{}?environment=production"])
async def test_ACL_11_names_that_could_be_paths_open_no_file(opened: Pair, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "exploit.pp").write_text("class tmp::exploit { }")
    for name in EXPLOITS:
        answer = await asked(opened, "GET", scheme.format(name))
        assert answer.status == 400, name


async def test_without_a_rule_of_the_site_the_doors_are_closed(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    async with pair.mastered():
        await pair.run()
        for path in ("resource_type/stage", "resource_types/*", "resource/user/root", "resources/user"):
            assert (await asked(pair, "GET", f"/production/{path}")).status == 403
            assert (await asked(pair, "GET", f"/puppet/v3/{path}?environment=production")).status == 403
