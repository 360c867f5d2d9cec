"""`strict=error` and `strict_variables`, which are Puppet 8's defaults and settings of ours: the same manifests, here and with Puppet 8."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.interop.peers import PUPPET_8
from tests.support.processes import Done, clean_environment, run
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "8.10: strictness"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_8.why_not()), reason=PUPPET_8.why_not()),
]

MANIFESTS = [
    "notice($nope)",
    'notice("in ${nope}")',
    "notice($::nope)",
    "notice($no::such::x)",
    "notice(inline_epp('<%= $nope %>'))",
    "Notify { message => $nope } notify { 'q': }",
    "notice(defined('$nope'), getvar('nope'), getvar('nope.x'))",
    "notice('1' + 1)",
    "notice({ a => 1, a => 2 })",
    "notice($facts['nope'], $facts['nope']['x'])",
    "$x = undef notice($x['a'])",
    "class a { } class a { }",
]


def said(done: Done) -> list[str]:
    """The first error and what was noticed; ours says below an error what might help."""
    notices = re.findall(r"^Notice: Scope.*$", done.text, re.M)
    return [*notices, *re.findall(r"^Error: .*$", done.text, re.M)[:1]]


@pytest.mark.parametrize("manifest", with_smoke(MANIFESTS, "notice($nope)", "notice('1' + 1)"))
def test_a_manifest_is_taken_as_strictly(tmp_path: Path, manifest: str) -> None:
    def words(whose: str, *kinds: str) -> list[str]:
        places = {name: str(tmp_path / whose / name) for name in ("confdir", "vardir", "rundir", "logdir", *kinds)} | {"color": "false"}
        (tmp_path / whose).mkdir()
        return ["apply", "--noop", "-e", manifest, *(part for name, value in places.items() for part in (f"--{name}", value))]

    environ = clean_environment(HOME=str(tmp_path))
    theirs = run(PUPPET_8.command(tmp_path, "puppet", *words("theirs", "publicdir")), environ)
    ours = run([sys.executable, "-I", "-m", "bunraku", *words("ours"), "--strict", "error", "--strict_variables"], environ)
    assert said(theirs)
    assert (ours.code, said(ours)) == (theirs.code, said(theirs))
