"""The measurement of stores: a small run of it, without PuppetDB."""

from __future__ import annotations

import pytest

from tests.bench import store, store_data
from tests.bench.store import Scope

SMALL = Scope(nodes=4, large_nodes=1, commands=4, warming=1, queries=2, settled=0)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["ours", pytest.param("postgresql", marks=pytest.mark.full)])
def test_a_small_run_measures_each_command_and_each_query(side: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = store.run(SMALL, [side])[side]
    if not found:
        pytest.skip(capsys.readouterr().out)
    assert found["start"] > 0 and found["idle_pss"] > 0
    assert set(found["queries"]) == {query.title for query in store.queries()}
    assert all(numbers["seconds"] > 0 for numbers in found["commands"].values())


@pytest.mark.parametrize(("rates", "is_still"), [([1, 2, 3], False), ([1, 2, 3, 4], False), ([4, 4.1, 3, 4.1], True)])
def test_a_rate_stands_still_when_three_batches_brought_nothing(rates: list[float], is_still: bool) -> None:
    assert store.stands_still(rates) == is_still


@pytest.mark.parametrize("size", [100, 1000])
def test_a_catalog_has_its_size_and_edges_between_its_resources(size: int) -> None:
    payload = store_data.catalog(1, 1, size).payload
    names = {(resource["type"], resource["title"]) for resource in payload["resources"]}
    assert len(names) == size == len(payload["edges"]) + 1
    assert all((end["type"], end["title"]) in names for edge in payload["edges"] for end in (edge["source"], edge["target"]))
    assert sum(resource["exported"] for resource in payload["resources"]) == store_data.EXPORTED


def test_five_resources_of_a_catalog_differ_from_round_to_round() -> None:
    before, after = (store_data.catalog(1, round, 100).payload["resources"] for round in (1, 2))
    assert sum(old != new for old, new in zip(before, after, strict=True)) == store_data.CHANGED_RESOURCES
