"""What is recorded of custom facts in Ruby is what the installed Facter answers, and what ours does when that program runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.facts.builtin.host import Host
from agent.facts.external import ExternalFactLimits
from agent.facts.facter import FactSources, gather
from agent.facts.ruby import facter_program
from tests.support.ruby_facts import FACTS, RECORDED, external_folder

pytestmark = [
    pytest.mark.works_with("Facter and facts in Ruby", "values and errors of Facter 4.3"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("facter") is None, reason="facter is not installed"),
]

OF_THE_MACHINE = ("kernelversion", "kernelrelease")  # which a fact of no weight, or of no value, does not replace


def ask_facter(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "FACTER_from_environment": "environment", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["facter", "--json", "--no-color", *arguments], capture_output=True, text=True, timeout=120, check=False, env=environ
    )


def facters_answers(folder: Path) -> dict[str, Any]:
    """Return the facts that only the files have, or have changed, and the lines in the log, with the folder as FOLDER."""
    plain = json.loads(ask_facter().stdout)
    answer = ask_facter("--custom-dir", str(FACTS), "--external-dir", str(external_folder(folder)))
    text = answer.stdout[answer.stdout.index("{\n") :]  # a fact prints before
    facts = {name: value for name, value in json.loads(text).items() if name == "kernelmajversion" or name not in plain}
    lines = re.findall(r"^\[[^]]*\] (?:WARN|ERROR) [\w:]+ - (.*?) *$", answer.stderr, re.MULTILINE)
    lines = [line.replace(str(FACTS), "FOLDER") for line in lines if "/proc/1/environ" not in line]
    return {"facts": dict(sorted(facts.items())), "lines": sorted(dict.fromkeys(lines))}


@pytest.mark.smoke
def test_what_is_recorded_is_what_facter_answers(tmp_path: Path) -> None:
    answers = facters_answers(tmp_path)
    assert answers["facts"].keys().isdisjoint(OF_THE_MACHINE)
    assert answers == json.loads(RECORDED.read_text()), "python -m tests.interop.test_ruby_facts_beside_facter records it anew"


async def test_facts_are_run_by_facter_where_the_setting_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine.rb").write_text(
        "Facter.add(:mine) { setcode { {'a' => [1, Facter.value(:kernel)]} } }\n"
        "Facter.add('other') { has_weight 5; setcode 'echo other' }\nFacter.add(:never) { confine kernel: 'Plan9'; setcode { 1 } }\n"
    )
    (tmp_path / "kernel.rb").write_text("Facter.add(:kernel) { has_weight 3; setcode { 'mine' } }\n")
    (tmp_path / "bad.rb").write_text("Facter.add(:bad) { setcode { raise 'no' } }\n")
    facts = await gather(Host(), FactSources(custom=[tmp_path], ruby=facter_program(ExternalFactLimits())))
    assert (facts["mine"], facts["other"], facts["kernel"]) == ({"a": [1, "mine"]}, "other", "mine")
    assert facts.keys().isdisjoint({"never", "bad"})
    assert "bad" in caplog.text


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        RECORDED.write_text(json.dumps(facters_answers(Path(scratch)), indent=1, ensure_ascii=False) + "\n")
