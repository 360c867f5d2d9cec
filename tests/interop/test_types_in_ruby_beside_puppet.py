"""Types and providers in Ruby: the real `puppet apply` and ours say and do the same, twice in a row."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared.ruby import find_ruby
from tests.interop.applying import apply_twice, files_of
from tests.interop.peers import PUPPET_5, PUPPET_8, Release

pytestmark = [
    pytest.mark.works_with("Ruby in modules, without Puppet", "types and providers: the same log lines and files as the real puppet apply"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(not shutil.which("puppet") or not find_ruby("auto"), reason="there is no puppet and no ruby"),
]

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "tests" / "bunraku" / "ruby_modules"

VALUES = """
file { '@shelf': ensure => directory }
jar { '@shelf:a': content => ' hello ', colour => 'scarlet', parts => ['x', 'z'], strict => 'yes' }
jar { 'b': shelf => '@shelf', colour => 'custom-blue', label => 'l', tool => 't', provider => labelled }
jar { 'c': shelf => '@shelf', label => 'dropped', tool => 't' }
jar { 'gone': ensure => absent, shelf => '@shelf' }
jar { 'sealed': ensure => closed, shelf => '@shelf' }
jar { '@shelf:n': colour => 'custom-none', schedule => never }
jar { '@shelf:secret': content => Sensitive('secret-thing'), audit => 'content' }
jar { '@shelf:loud': content => 'x', loglevel => warning, tag => 'q' }
schedule { 'never': period => never }
notify { 'last': require => Jar['b'] }
notify { 'skipped': require => Jar['sealed'] }
"""

LISTS = """
heap { 'one': size => '3', colour => 'blue', audit => 'size' }
heap { 'old': size => 5 }
heap { 'older': ensure => absent }
heap { 'manyx': size => 1, folder => '@root' }
heap { 'dirs': size => 1, folder => '@shelf' }
notify { 'x': notify => Heap['one'] }
line { 'a': value => '9' }
line { 'c': value => 'new' }
line { 'b': ensure => absent }
line { 'other': value => 'o', target => '@shelf/lines' }
"""

PURGE = """
resources { 'heap': purge => true }
heap { 'old': size => 1 }
"""

META = """
heap { 'old': audit => all }
heap { 'older': size => 2, audit => ['colour', 'size'] }
heap { 'quiet': size => 1, noop => true }
heap { 'late': size => 1, schedule => never }
heap { 'tagged': size => 1, tag => 'only', alias => 'other' }
heap { 'loud': size => 1, loglevel => 'warning', require => Heap['other'] }
jar { '@shelf:watched': audit => [content, ensure], require => File['@shelf'] }
file { '@shelf': ensure => directory }
schedule { 'never': period => never }
line { 'a': audit => value }
"""

LINES = "a = 1\n# note\nb=2\n"
HEAPS = "---\nold:\n  :size: 1\n  :colour: red\nolder:\n  :size: 2\n"

TRUNKS = """
class house { trunk { 'inside': told => 'x' } }
include house
trunk { 'heavy': heavy => true, told => 'x' }
trunk { 'light': heavy => false, told => 'x' }
trunk { 'piped': command => ['echo one | tr o O'], told => 'x' }
trunk { 'service': command => 'service', told => 'x' }
trunk { 'filling': command => 'fill', folder => '@shelf/full', told => 'x' } -> file { '@shelf/full': content => 'empty' }
trunk { 'counted': command => 'count', told => 'x' }
trunk { 'numbered': id => 'seven', told => 'x' }
trunk { 'torn': lid => torn }
trunk { 'burst': lid => burst }
trunk { 'without': lid => burst, command => 'no lid' }
"""

PEGS = """
resources { 'peg': purge => true }
peg { 'second': ensure => present }
"""

SCROLLS = """
file { '@shelf/headed': content => "# HEADER: of a provider\\n[a]\\nb = c\\n", replace => false }
scroll { '@shelf/missing': text => "new\\n", sections => 'none' }
scroll { '@shelf/headed': text => "# HEADER: x\\nnew\\n", sections => 'a', require => File['@shelf/headed'] }
scroll { '@shelf': text => 'of a folder' }
"""

ERRANDS = """
trunk { 'list': user => 'nobody', command => ['sh', '-c', 'id; id -ru; pwd'], told => 'x', folder => '/root' }
trunk { 'text': user => 'nobody', command => 'HERE=1 env | grep HERE; id -ru', told => 'x' }
trunk { 'failing': user => 'nobody', command => 'exit 3', told => 'x' }
trunk { 'nobody': user => 'no-such-user', command => 'id', told => 'x' }
trunk { 'own': command => 'id -ru', told => 'x' }
"""


def applied(program: list[str], manifest: str, root: Path, *options: str) -> str:
    """What a program prints and leaves behind when it applies a manifest twice."""
    shelf = root / "shelf"
    shelf.mkdir(parents=True)
    (root / "lines").write_text(LINES)
    (root / "heaps.yaml").write_text(HEAPS)
    (root / "site.pp").write_text(manifest.replace("@shelf", str(shelf)).replace("@root", str(root)))
    environ = {"HEAPS": str(root / "heaps.yaml"), "LINES_FILE": str(root / "lines")}

    def change_what_is_audited() -> None:
        if manifest == META:
            (root / "heaps.yaml").write_text((root / "heaps.yaml").read_text().replace("red", "blue"))
            (root / "lines").write_text((root / "lines").read_text().replace("a = 1", "a = 7"))

    told = apply_twice(program, root, MODULES, *options, environ=environ, between=change_what_is_audited)
    for path in files_of(root):
        told += f"== {path.relative_to(root)} {path.stat().st_mode:o}\n{path.read_text()}\n"
    told = re.sub(
        r"autogenerated at .*| +$| in [\d.]+ seconds|^Notice: Compiled catalog.*\n|^Error: Facter: .*\n", "", told, flags=re.MULTILINE
    )
    return told.replace(str(root), "@root")


@pytest.mark.parametrize(
    ("manifest", "options"),
    [
        pytest.param(VALUES + LISTS, (), marks=pytest.mark.smoke),
        (VALUES + LISTS, ("--noop",)),
        (PURGE, ()),
        (META, ()),
        (META, ("--tags", "only")),
        (TRUNKS, ()),
        (PEGS, ()),
        (SCROLLS, ()),
    ],
    ids=["applied", "in noop", "purged", "audited and the like", "by tag", "trunks", "purged beyond a check", "texts of files"],
)
def test_both_say_and_do_the_same(manifest: str, options: tuple[str, ...], tmp_path: Path) -> None:
    ours = applied([sys.executable, "-m", "bunraku"], manifest, tmp_path / "ours", *options)
    assert ours == applied(["puppet"], manifest, tmp_path / "theirs", *options)


@pytest.mark.parametrize("release", [PUPPET_5, PUPPET_8], ids=["Ruby 2.7", "Ruby 3.3"])
def test_other_versions_of_ruby_do_the_same(release: Release, tmp_path: Path) -> None:
    if reason := release.why_not():
        pytest.skip(reason)
    wrapper = tmp_path / "ruby"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(release.command(tmp_path, "ruby", also=[ROOT]))} "$@"\n')
    wrapper.chmod(0o755)
    program = [sys.executable, "-m", "bunraku"]
    other = applied(program, VALUES + LISTS, tmp_path / "other", "--ruby", str(wrapper))
    assert "Jar[b]/ensure" in other
    assert other == applied(program, VALUES + LISTS, tmp_path / "own")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_commands_as_another_user_have_its_rights_for_good(tmp_path: Path) -> None:
    ours = applied([sys.executable, "-m", "bunraku"], ERRANDS, tmp_path / "ours")
    assert ours.count("uid=65534(nobody)") == 2
    assert ours == applied(["puppet"], ERRANDS, tmp_path / "theirs")


RESOURCES = [
    "heap",
    "heap old",
    "heap nothere",
    "heap new ensure=present size=3 colour=red",
    "heap new ensure=absent",
    "heap other ensure=present --noop",
    "heap --to_yaml",
    "heap old -p folder",
    "heap old size=many",
    "heap old provider=none",
    "line a",
    "line z value=1 ensure=present target=@root/lines",
    "Line nothere",
]


def test_puppet_resource_lists_shows_and_changes_as_the_reference_does(tmp_path: Path) -> None:
    answers: dict[str, list[str]] = {}
    for name, program in (("ours", [sys.executable, "-m", "bunraku"]), ("theirs", ["puppet"])):
        root = tmp_path / name
        root.mkdir()
        (root / "lines").write_text(LINES)
        (root / "heaps.yaml").write_text(HEAPS)
        environ = {**os.environ, "HEAPS": str(root / "heaps.yaml"), "LINES_FILE": str(root / "lines")}
        own = ["--color=false", "--modulepath", str(MODULES), "--confdir", str(root / "conf"), "--vardir", str(root / "var")]
        answers[name] = []
        for words in RESOURCES:
            done = subprocess.run(
                [*program, "resource", *own, *words.replace("@root", str(root)).split()],
                env=environ,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=300,
                check=False,
            )
            told = re.sub(r"^Error: Facter: .*\n", "", done.stdout, flags=re.MULTILINE).replace(str(root), "@root")
            answers[name].append(f"{words}: exit {done.returncode}\n{told}")
        answers[name] += [re.sub("autogenerated at .*", "", (root / each).read_text()) for each in ("lines", "heaps.yaml")]
    assert answers["ours"] == answers["theirs"]
