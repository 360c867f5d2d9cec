"""A catalog is the same in each coding, also from memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.codings import ACCEPTED_BY_RUBY, decode
from tests.support.raw_master import RawAnswer
from tests.support.wired_site import WiredSite

pytestmark = pytest.mark.slow

MANIFEST = "Integer[1, 300].each |$n| { notify { \"number ${n}\": message => 'some words' } }"
CODINGS = {"": "", "gzip": "gzip", "deflate": "deflate", ACCEPTED_BY_RUBY: "deflate"}


def catalog_in(answer: RawAnswer) -> dict[str, Any]:
    assert answer.status == 200, answer.text
    catalog: dict[str, Any] = json.loads(decode(answer.body, answer.headers))
    return catalog


async def test_each_client_reads_the_catalog_that_it_gets(wired: WiredSite) -> None:
    (wired.root / "conf/code/environments/production/manifests/site.pp").write_text(MANIFEST)
    catalogs = []
    client = await wired.client("agent1")
    for header, coding in CODINGS.items():
        answer = await wired.catalog(client, "agent1", {}, accept_encoding=header)
        assert answer.headers.get("content-encoding", "") == coding
        assert (answer.headers.get("vary") == "Accept-Encoding") == bool(coding)
        catalogs.append(catalog_in(answer))
    assert len({catalog.pop("catalog_uuid") for catalog in catalogs}) == len(CODINGS)
    assert all(catalog == catalogs[0] for catalog in catalogs)
    assert len(catalogs[0]["resources"]) > 300
