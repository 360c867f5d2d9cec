"""Catalogs of given facts beside those of agents, from one started master: what one asks for never shows in what the other gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from shared.data import plainyaml
from tests.support.started import Started, started

pytestmark = pytest.mark.slow

RULES = "path /puppet/v4/catalog\nallow agent2\n"
SITE = """
notify { "${trusted['certname']} is ${facts['role']}": }
@@notify { 'exported': }
"""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("site"), auth=RULES, catalog_cache_terminus="json", compile_workers="1") as made:
        made.process.write({"manifests/site.pp": SITE})
        yield made


def data(body: bytes) -> Any:
    """What a body holds; headers come behind it."""
    return json.JSONDecoder().raw_decode(body.decode())[0]


def titles(catalog: Any) -> list[str]:
    return [each["title"] for each in catalog["resources"] if each["type"] == "Notify"]


def given(site: Started, role: str, *, keep: bool = False, **more: Any) -> list[str]:
    """What agent2, which may, gets as agent1's catalog."""
    asked = {"certname": "agent1", "environment": "production", "persistence": {"facts": keep, "catalog": keep}, **more}
    asked["facts"] = {"values": {"role": role}}
    answer = site.ask("POST", "/puppet/v4/catalog", json.dumps(asked).encode(), name="agent2")
    assert answer.status == 200, answer
    return titles(data(answer.body)["catalog"])


def own(site: Started, role: str) -> list[str]:
    """What agent1 gets itself."""
    facts = quote(quote(json.dumps({"name": "agent1", "values": {"role": role}}), safe=""))
    form = f"facts_format=application%2Fjson&facts={facts}".encode()
    answer = site.ask("POST", "/puppet/v3/catalog/agent1?environment=production", form, headers=FORM)
    assert answer.status == 200, answer
    return titles(data(answer.body))


def test_an_agents_catalog_is_its_own_whatever_others_were_told_of_it(site: Started) -> None:
    forged = {"trusted_facts": {"values": {"certname": "forged"}}}
    for _ in range(2):  # the second time all are in memory
        assert own(site, "web") == ["agent1 is web"]
        assert given(site, "web", **forged) == ["forged is web", "exported"]
        assert given(site, "web") == [" is web", "exported"]
        assert given(site, "db", **forged) == ["forged is db", "exported"]
        assert own(site, "web") == ["agent1 is web"]


def test_nothing_is_kept_unless_it_is_asked_for(site: Started) -> None:
    own(site, "kept")
    facts = site.process.root / "var/yaml/facts/agent1.yaml"
    catalog = site.process.root / "var/server_data/catalog/agent1.json"
    before = facts.read_bytes(), catalog.read_bytes()
    given(site, "other")
    assert (facts.read_bytes(), catalog.read_bytes()) == before
    given(site, "other", keep=True)
    stored = plainyaml.loads(facts.read_bytes(), aliases=True)
    assert "other" in str(stored) and titles(json.loads(catalog.read_bytes())) == [" is other", "exported"]


def test_who_may_not_ask_gets_nothing_and_is_in_the_trail(site: Started) -> None:
    asked = {"certname": "agent2", "environment": "production", "persistence": {"facts": True, "catalog": True}}
    for name in ("agent1", None):
        answer = site.ask("POST", "/puppet/v4/catalog", json.dumps(asked).encode(), name=name)
        assert answer.status == 403 and b"Forbidden request: /puppet/v4/catalog (method :post)" in answer.body
    site.process.until_logged("access to '/puppet/v4/catalog' [POST]")


def test_code_that_changes_is_compiled_anew(site: Started) -> None:
    assert given(site, "web") == [" is web", "exported"]
    site.process.write({"manifests/site.pp": SITE + "notify { 'new': }\n"})
    try:
        assert given(site, "web") == [" is web", "exported", "new"]
    finally:
        site.process.write({"manifests/site.pp": SITE})
