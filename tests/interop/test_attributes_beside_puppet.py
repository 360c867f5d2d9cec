"""Our types have the attributes of Puppet's own, no more and no fewer, and their providers or say which are missing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.types import CORE, builtin_types
from tests.conformance.test_sandbox import IMAGE, why_not
from tests.support.processes import clean_environment
from tests.support.types_page import EXERCISED, MISSING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(not (shutil.which("puppet") and shutil.which("ruby")), reason="needs Debian's puppet-agent"),
]

ASK = """
require 'json'
require 'puppet'
Dir['/usr/share/puppet/modules{,.available}/*/lib'].each { |folder| $LOAD_PATH.unshift(folder) }
found = ARGV.map { |name| [name, Puppet::Type.type(name)] }.select { |_, type| type }
puts JSON.dump(Hash[found.map { |name, type|
  [name, { 'properties' => type.properties.map(&:name).map(&:to_s), 'parameters' => type.parameters.map(&:to_s),
           'namevars' => type.key_attributes.map(&:to_s), 'metaparameters' => type.metaparams.map(&:to_s),
           'providers' => type.providers.map(&:to_s) }]
}])
"""
CHECKOUT = Path(__file__).parents[2]
OURS_ALONE = frozenset(("anchor", "concat_file", "concat_fragment", "file_line", "ini_setting", "ini_subsetting"))  # of other modules


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    names = sorted(set(builtin_types()) - OURS_ALONE)
    where = [] if why_not() else ["chroot", str(IMAGE)]  # the image has more of the modules; it is only read
    done = subprocess.run([*where, "ruby", "-e", ASK, *names], capture_output=True, timeout=60, check=True, encoding="utf-8")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.smoke
def test_the_types_of_puppet_itself_are_all_compared(real: dict[str, Any]) -> None:
    assert set(real) >= CORE - {"component", "whit"}


@pytest.mark.parametrize("name", sorted(set(builtin_types()) - OURS_ALONE))
@pytest.mark.smoke
def test_a_type_has_the_real_ones_attributes(name: str, real: dict[str, Any]) -> None:
    if name not in real:
        pytest.skip(f"the module with {name} is not installed")
    declaration = builtin_types()[name].declaration
    ours = {
        "properties": {each.name for each in declaration.properties},
        "parameters": {each.name for each in declaration.parameters},
        "namevars": set(declaration.namevars),
        "metaparameters": {each.name for each in declaration.attributes.values() if each.meta},
    }
    assert ours == {kind: set(names) for kind, names in real[name].items() if kind != "providers"}


@pytest.mark.parametrize("name", sorted(MISSING))
def test_the_providers_that_are_missing_are_those_that_are_named(name: str, real: dict[str, Any]) -> None:
    assert set(real[name]["providers"]) - set(EXERCISED[name]) == set(MISSING[name])


def names(program: list[str], type_name: str) -> dict[str, set[str]]:
    """What `puppet describe --short --meta` lists of a type, by section."""
    words = [*program, "describe", "--short", "--meta", type_name]
    done = subprocess.run(words, capture_output=True, timeout=60, check=True, encoding="utf-8", env=clean_environment(), cwd=CHECKOUT)
    sections = re.split(r"^(Parameters|Meta Parameters|Providers)\n-+\n", done.stdout, flags=re.MULTILINE)
    return {title: set(text.replace(",", " ").split()) for title, text in zip(sections[1::2], sections[2::2], strict=True)}


@pytest.mark.parametrize("name", ["exec", "file", "package", "service", "user"])
def test_describe_names_what_the_real_one_names(name: str) -> None:
    ours, real = names([sys.executable, "-m", "bunraku.puppet"], name), names(["puppet"], name)
    providers = ours.pop("Providers")
    assert providers >= real.pop("Providers") - set(MISSING[name])
    assert ours == real
