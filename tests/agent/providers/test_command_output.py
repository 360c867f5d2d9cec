"""What commands print, read by the providers: recorded text in, plain data out; the cases are in `tests/data/providers/parsed.json`."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

CASES = json.loads((Path(__file__).parents[2] / "data/providers/parsed.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[f"{case['function']}-{number}" for number, case in enumerate(CASES)])
def test_recorded_output_is_read(case: dict[str, Any]) -> None:
    module, _, function = case["function"].partition(":")
    parsed = getattr(import_module(f"agent.providers.{module}"), function)(case["text"])
    assert json.loads(json.dumps(parsed)) == case["expected"]


def test_groups_of_pacman_count_when_all_their_packages_are_there() -> None:
    from agent.providers.package.pacman import parse_groups

    text = "gnome eog\ngnome gedit\nxorg xorg-server\n"
    assert parse_groups(text, {"eog": "1", "gedit": "2", "acl": "3"}) == {"gnome": "eog 1, gedit 2"}


def test_a_process_is_found_by_its_line_but_never_this_one() -> None:
    from agent.providers.service.base import parse_processes

    text = "UID  PID PPID C STIME TTY TIME CMD\nroot 10 1 0 10:00 ? 0:00 puppet resource nginx\nwww  11 1 0 10:00 ? 0:00 nginx: master\n"
    assert parse_processes(text, "nginx", own=10) == 11
    assert parse_processes(text, "apache", own=10) is None
    with pytest.raises(ValueError, match="regular expression"):
        parse_processes(text, "(", own=10)
