"""`$settings::…`: what manifests see of each setting, here and with Puppet."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.processes import REAL_PUPPET, clean_environment, has_real_puppet, run

pytestmark = [
    pytest.mark.works_with("Commands and answers of Puppet 7.23", "settings"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(not has_real_puppet(), reason="puppet is not installed"),
]

MANIFEST = '$settings::all_local.each |$name, $value| { notice("${name} ${type($value, generalized)}") }'
DIFFERENT = {
    "crl_refresh_interval": "a day here, never there",
    "http_extra_headers": "no password is shown to manifests",
    "http_proxy_password": "no password is shown to manifests",
    "ldappassword": "no password is shown to manifests",
    "maxwaitforcert": "the text unlimited here, an infinite number there",
}


@pytest.mark.smoke
def test_manifests_see_each_setting_of_puppet_as_the_same_kind_of_value(tmp_path: Path) -> None:
    def kinds(name: str, *program: str) -> dict[str, str]:
        places = {each: str(tmp_path / name / each) for each in ("confdir", "vardir", "rundir", "logdir")} | {"color": "false"}
        options = [part for option, value in places.items() for part in (f"--{option}", value)]
        (tmp_path / name).mkdir()
        done = run([*program, "apply", *options, "-e", MANIFEST], clean_environment(HOME=str(tmp_path)))
        assert done.code == 0, done.text
        return dict(re.findall(r"^Notice: Scope\(Class\[main\]\): (\w+) (.*)$", done.text, re.M))

    theirs, ours = kinds("theirs", REAL_PUPPET), kinds("ours", sys.executable, "-I", "-m", "bunraku")
    assert len(theirs) > 200
    assert {name: ours.get(name) for name in theirs if ours.get(name) != theirs[name]}.keys() == DIFFERENT.keys()
