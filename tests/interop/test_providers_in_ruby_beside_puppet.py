"""Providers in Ruby of Puppet's own types: the real `puppet apply` and ours say and do the same, twice in a row."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from shared.ruby import find_ruby
from tests.interop.applying import apply_twice, files_of

pytestmark = [
    pytest.mark.works_with("Ruby in modules, without Puppet", "providers of Puppet's own types"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(not shutil.which("puppet") or not find_ruby("auto"), reason="there is no puppet and no ruby"),
]

MODULES = Path(__file__).parents[1] / "bunraku" / "ruby_modules"

PACKAGES = """
Package { provider => crate }
package { 'one': ensure => present, install_options => ['-a', { 'key' => 'v', 'b' => 'w' }], source => '/src' }
package { 'two': ensure => '1.5', require => Package['one'] }
package { 'old': ensure => latest, require => Package['two'] }
package { 'new': ensure => latest, require => Package['old'] }
package { 'gone': ensure => absent, uninstall_options => ['-f'], require => Package['new'] }
package { 'none': ensure => present, require => Package['gone'] }
package { 'offline': ensure => latest, require => Package['gone'] }
package { 'kept': ensure => purged, provider => purgeable, require => Package['gone'] }
package { 'range': ensure => '>1', provider => purgeable, require => Package['kept'] }
notify { 'after': require => Package['none'] }
"""

SERVICES = """
Service { provider => lamp }
service { 'off': ensure => running, enable => true }
service { 'on': ensure => stopped, enable => false, require => Service['off'] }
service { 'same': enable => true, hasstatus => false, require => Service['on'] }
service { 'broken': ensure => running, require => Service['same'] }
notify { 'n': notify => [Service['same'], Service['lit'], Service['dark']], require => Service['same'] }
service { 'lit': }
service { 'dark': require => Service['lit'] }
Service['dark'] -> Service['wax'] -> Service['tallow'] -> Service['bare'] -> Service['again']
service {
  default: provider => candle;
  'wax': ensure => running, status => 'test -e @root/wax', start => 'touch @root/wax';
  'tallow': ensure => stopped, status => '/bin/true', stop => '/bin/false';
  'bare': ensure => running, hasstatus => false, pattern => 'no such process at all';
  'again': ensure => running, status => '/bin/true', restart => 'touch @root/again', subscribe => Notify['n'];
}
"""

USERS = """
User { provider => guest }
user { 'ann': ensure => present, uid => 5, comment => 'Ann', groups => ['b', 'a'], managehome => true }
user { 'bob': ensure => present, comment => 'Robert', groups => ['x'], require => User['ann'] }
user { 'cid': ensure => absent, require => User['bob'] }
user { 'dan': ensure => present, groups => ['only'], membership => inclusive, require => User['cid'] }
"""

PARCELS = """
parcel { 'one': way => default, tries => 2, old => '@root/site.pp', new => '@root/guests' }
parcel { 'two': way => 'far', tries => 3, require => Parcel['one'] }
"""


def applied(program: list[str], manifest: str, root: Path, *options: str) -> str:
    """What a program prints and leaves behind when it applies a manifest twice."""
    for folder in ("crates", "lamps"):
        (root / folder).mkdir(parents=True)
    for name, version in {"old": "1.0", "gone": "1.0", "kept": "1", "range": "1.5", "offline": "1.0"}.items():
        (root / "crates" / f"{name}.crate").write_text(version)
    for name in ("on.on", "on.boot", "same.on", "lit.on"):
        (root / "lamps" / name).write_text("")
    (root / "guests").write_text("bob:7:Bob:w,y\ncid:8:Cid:\ndan:9::p,q\n")
    (root / "site.pp").write_text(manifest.replace("@root", str(root)))
    environ = {"CRATES": str(root / "crates"), "LAMPS": str(root / "lamps"), "GUESTS": str(root / "guests")}
    told = apply_twice(program, root, MODULES, *options, environ=environ)
    for path in files_of(root):
        told += f"== {path.relative_to(root)}\n{path.read_text()}\n"
    told = re.sub(r" in [\d.]+ seconds|^Notice: Compiled catalog.*\n|^Error: Facter: .*\n", "", told, flags=re.MULTILINE)
    return told.replace(str(root), "@root")


@pytest.mark.parametrize("manifest", [PACKAGES, SERVICES, USERS, PARCELS], ids=["packages", "services", "users", "parcels"])
@pytest.mark.parametrize("options", [(), ("--noop",)], ids=["applied", "in noop"])
def test_both_say_and_do_the_same(manifest: str, options: tuple[str, ...], tmp_path: Path) -> None:
    ours = applied([sys.executable, "-m", "bunraku"], manifest, tmp_path / "ours", *options)
    assert ours == applied(["puppet"], manifest, tmp_path / "theirs", *options)
