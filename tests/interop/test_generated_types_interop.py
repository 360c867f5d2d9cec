"""Debian's puppet reads the resource types that we wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import Puppet
from tests.support.processes import has_real_puppet

pytestmark = [
    pytest.mark.works_with("Commands and answers of Puppet 7.23", "puppet generate types"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(not has_real_puppet(), reason="Debian's puppet-agent is not installed"),
]

TYPE = """Puppet::Type.newtype(:record) do
  def self.title_patterns
    [[%r{^(.*)/(.*)$}, [[:name], [:kind]]], [/^([^\\/]+)$/, [[:name]]]]
  end
  ensurable
  newparam(:name) { isnamevar }
  newparam(:kind) { isnamevar }
  newproperty(:value) { newvalues(:a, /^\\d+$/) }
end
"""


def theirs(root: Path, code: str) -> str:
    """What `puppet apply` says; the Ruby source is gone, so that only the generated type is left."""
    argv = ["/usr/bin/puppet", "apply", "--noop", "--confdir", str(root / "conf"), "--vardir", str(root / "var")]
    argv += ["--environmentpath", str(root / "environments"), "--environment", "production", "-e", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.mark.smoke
def test_a_real_compiler_takes_our_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "environments/production/modules/dns/lib/puppet/type/record.rb"
    source.parent.mkdir(parents=True)
    source.write_text(TYPE)
    (tmp_path / "conf").mkdir()
    said = Puppet(tmp_path, capsys)("generate", "types", "--environmentpath", str(tmp_path / "environments"))
    assert said.code == 0
    source.unlink()

    good = theirs(tmp_path, "@record { 'www/A': ensure => present, value => 5 } notice('compiled')")
    bad = theirs(tmp_path, "@record { 'www/A': values => 5 }")
    same = theirs(tmp_path, "@record { 'www/A': } @record { 'other': name => 'www', kind => 'A' }")

    assert "compiled" in good
    assert "no parameter named 'values'" in bad
    assert "Cannot alias Record[other]" in same
