"""
All types that Debian's modules have in Ruby, loaded by the real `puppet` and by ours: the same declarations, defaults, titles, munged
values, errors, comparisons, messages and descriptions. Both run the type of `type_probe`, whose provider asks the same questions of either.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from shared.ruby import find_ruby
from shared.types import builtin_types
from tests.gate import caches

HERE = Path(__file__).parent
MODULES = caches.folder("debian-modules") / "modules"
SEED = 7
TIMEOUT = 1800
WITHOUT_ATTRIBUTES = ["openstack_config"]  # a base of providers; no resource of it can be declared
OURS = [sys.executable, "-m", "bunraku"]
THEIRS = ["puppet"]

pytestmark = [
    pytest.mark.works_with(
        "Ruby in modules, without Puppet", "all 223 types of Debian's modules: declarations, values, errors, puppet describe"
    ),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(not shutil.which("puppet") or not find_ruby("auto"), reason="there is no puppet and no ruby"),
    pytest.mark.skipif(not MODULES.is_dir(), reason="Debian's modules are not here; `make debian-modules` fetches them"),
]

TITLES = ["a", "/a/b", "a/b", "user@host", "a b", "a:b:c", "a@b@c", "001 x", "7", "é", "", "INPUT:filter:IPv4", "eth0:7"]
TITLES += ["192.168.1.1:6000/sdb", "6F6B15509CF8E59E6E469F327F438280EF8D349F"]


def types() -> list[str]:
    """The names of all types in Ruby that the agent has not itself."""
    names = {path.stem for path in MODULES.glob("*/lib/puppet/type/*.rb")}
    return sorted(names - builtin_types().keys())


def generated_values(seed: int) -> list[Any]:
    """Values as catalogs have them: one of each kind, and some put together at random."""
    rng = random.Random(seed)
    words = ["present", "true", "no", "0644", "a=b", "é", "user@host", "10.0.0.0/8", "a b", "/a//b/", "-1", "22-80", "undef"]
    values: list[Any] = ["", "/a/b", 1, -3, 2.5, True, False, [], {}]
    values += [f"{rng.choice(words)}{rng.choice(['', '', ',', ' '])}{rng.choice(words)}" for _ in range(3)]
    values.append([rng.choice(words), rng.randrange(100), rng.choice([True, False])])
    values.append({rng.choice(words): [rng.choice(words)], rng.choice(words): {"b": rng.randrange(9)}})
    return values


@cache
def answers(program: str) -> dict[str, dict[str, Any]]:
    """What a program says about every type, by name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        questions = {
            "types": types(),
            "values": generated_values(SEED),
            "titles": TITLES,
            "base": yaml.safe_load((HERE / "type_probe" / "bases.yaml").read_text()),
        }
        (folder / "questions").write_text(json.dumps(questions))
        manifest = f"type_probe {{ '{folder}/questions': ensure => present, answers => '{folder}/answers' }}"
        own = ["--ruby_timeout", "1h", "--ruby_memory", "4GiB"] if program == "ours" else []
        words = [*(OURS if program == "ours" else THEIRS), "apply", *own, "--color=false"]
        words += ["--confdir", str(folder / "conf"), "--vardir", str(folder / "var")]
        words += ["--modulepath", f"{MODULES}:{HERE / 'type_probe'}", "-e", manifest]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert "ensure: created" in done.stdout, done.stdout + done.stderr
        return {each["type"]: each for each in map(json.loads, (folder / "answers").read_text().splitlines())}


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """What is not the same in two answers."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            yield from differences(theirs.get(key, "nothing"), ours.get(key, "nothing"), f"{path}/{key}")
    elif theirs != ours:
        yield f"{path}: theirs {theirs!r}, ours {ours!r}"


def test_each_type_is_loaded() -> None:
    assert len(types()) >= 223
    assert {name for name, each in answers("theirs").items() if "failure" in each} == set()
    assert {name for name, each in answers("ours").items() if "failure" in each} == set()
    assert sum(len(each["providers"]["each"]) for each in answers("ours").values()) >= 250


@pytest.mark.parametrize("part", ["declaration", "providers", "title", "titles", "values", "unchecked", "compared", "relations"])
def test_each_type_is_as_the_reference_has_it(part: str) -> None:
    ours = answers("ours")
    found = [each for name, theirs in answers("theirs").items() for each in differences(theirs[part], ours[name][part], name)]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])


def test_most_values_are_accepted_somewhere() -> None:
    """Were every resource refused, the comparisons above would compare errors only."""
    munged = [
        value.startswith("{")
        for each in answers("theirs").values()
        for values in (each["unchecked"] or each["values"]).values()
        for value in values.values()
    ]
    assert sum(munged) > 0.4 * len(munged)


def described(program: list[str]) -> dict[str, dict[str, str]]:
    """The words of `puppet describe`: by type, of its text, each attribute and its providers."""
    words = [*program, "describe", "--modulepath", str(MODULES), *(name for name in types() if name not in WITHOUT_ATTRIBUTES)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    parts = re.split(r"^(\w+)\n=+\n", done.stdout, flags=re.MULTILINE)
    return {name: sections(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def sections(text: str) -> dict[str, str]:
    """What a description says of each thing: without spaces, as the reference breaks long words, and without what each says of namevars."""
    text = text.replace(" (*namevar*)", "")
    parts = re.split(r"^(?:- \*\*(\w+)\*\*|(Parameters|Providers)\n-+)$", text, flags=re.MULTILINE)
    found = {"": "".join(parts[0].split())}
    for attribute, headline, words in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found[attribute or headline] = "".join(words.replace("It names the resource; by default the title.", "").split())
    return found


def test_each_type_is_described_in_the_same_words() -> None:
    ours = described(OURS)
    found = [each for name, theirs in described(THEIRS).items() for each in differences(theirs, ours[name], name)]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])
