"""Rollouts on disk: two writers do not undo each other's changes, and a broken file says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from master.rollouts.machine import Rollout, RolloutPlan, begin
from master.rollouts.storage import RolloutFiles
from master.rollouts.waves import Wave
from shared.errors import BadName, Conflict, PuppetError


def rollout(after: str = "new") -> Rollout:
    return begin(RolloutPlan("production", "old", after, (Wave("all", 100.0),)), ["web1"], 1000.0)


def test_a_rollout_is_found_again_and_listed(tmp_path: Path) -> None:
    files = RolloutFiles([tmp_path])
    assert files.load("production") is None and files.environments() == []
    stored = files.save(rollout(), 0)
    assert stored.revision == 1 and files.environments() == ["production"]
    assert RolloutFiles([tmp_path]).load("production") == stored
    assert files.load("production") is files.load("production"), "a file that has not changed is not read again"


def test_a_state_that_was_made_from_an_older_one_is_refused(tmp_path: Path) -> None:
    first, second = RolloutFiles([tmp_path]), RolloutFiles([tmp_path])
    first.save(rollout(), 0)
    with pytest.raises(Conflict, match="changed at the same time"):
        second.save(rollout(), 0)
    second.save(rollout("newer"), 1)
    stored = first.load("production")
    assert stored is not None and (stored.rollout.plan.after, stored.revision) == ("newer", 2), "the other process's change is seen"


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    files = RolloutFiles([tmp_path])
    files.save(rollout(), 0)
    path = tmp_path / ".versions" / "production" / "rollout.json"
    path.write_text(text)
    with pytest.raises(PuppetError, match=str(path)):
        files.load("production")


def test_the_prediction_of_another_version_is_none(tmp_path: Path) -> None:
    files = RolloutFiles([tmp_path])
    assert files.load_prediction(rollout()) is None
    files.save_prediction("production", {"version": "new", "nodes": []})
    assert files.load_prediction(rollout()) == {"version": "new", "nodes": []}
    assert files.load_prediction(rollout("newer")) is None


def test_an_environment_is_a_name(tmp_path: Path) -> None:
    with pytest.raises(BadName):
        RolloutFiles([tmp_path]).load("../x")
