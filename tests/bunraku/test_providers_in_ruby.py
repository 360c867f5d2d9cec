"""Providers that modules have in Ruby for Puppet's own types; tests/interop compares them with the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.ruby import RubyChild
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import Apply


@pytest.mark.parametrize(
    "code", ["package { 'bash': provider => dpkg }", "service { 'x': provider => base, hasstatus => false }", "user { 'root': }"]
)
def test_a_catalog_that_names_no_such_provider_never_starts_ruby(code: str, apply: Apply, started: list[RubyChild]) -> None:
    assert apply(code, "--noop").code == 0
    assert started == []


def test_without_a_ruby_only_their_own_resources_fail(apply: Apply) -> None:
    said = apply("package { 'x': provider => crate } notify { 'other': }", "--ruby", "", "--detailed-exitcodes")
    assert said.code == 6
    assert "Provider crate is not functional on this host" in said.err and "a program ruby" in said.err
    assert "Notice: other" in said.out


def test_a_name_that_no_provider_has_is_refused_without_ruby(apply: Apply, started: list[RubyChild]) -> None:
    said = apply("package { 'x': provider => nonesuch } notify { 'other': }")
    assert "Parameter provider failed on Package[x]: Invalid package provider 'nonesuch'" in said.err
    assert "Notice: other" not in said.out and started == []


def test_a_file_beside_providers_that_declares_none_is_no_provider(apply: Apply, tmp_path: Path) -> None:
    folder = tmp_path / "more" / "m" / "lib" / "puppet" / "provider" / "package"
    folder.mkdir(parents=True)
    (folder / "helper.rb").write_text("class Puppet::Provider::Package::Helper\nend\n")
    said = apply("package { 'x': provider => helper }", "--modulepath", str(tmp_path / "more"))
    assert "Parameter provider failed on Package[x]: Invalid package provider 'helper'" in said.err


@needs_ruby
def test_a_parent_that_only_puppets_own_ruby_has_is_named(apply: Apply) -> None:
    said = apply("package { 'x': provider => orphan } notify { 'other': }", "--detailed-exitcodes")
    assert said.code == 6
    assert "The package provider 'orphan' uses the provider gem of package, which only Puppet's own Ruby has" in said.err
    assert "Notice: other" in said.out


@needs_ruby
def test_one_that_is_made_for_the_host_is_the_default(apply: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHOSEN", "yes")
    said = apply("service { 'x': ensure => running }")
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "x.on").exists()


@needs_ruby
def test_what_they_list_is_asked_for_once(apply: Apply, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.crate").write_text("1.0")
    said = apply("package { ['a', 'b', 'c']: ensure => '1.0', provider => crate }")
    assert (said.code, said.err) == (0, "")
    assert said.out.count("crates are listed") == 1 and "Package[" not in said.out


@needs_ruby
def test_a_provider_that_ends_ruby_fails_its_resource_and_the_next_is_managed(
    apply: Apply, tmp_path: Path, started: list[RubyChild]
) -> None:
    said = apply(
        "Package { provider => crate, ensure => present } package { 'fatal': } package { 'b': } "
        "package { 'c': require => Package['fatal'] }",
        "--detailed-exitcodes",
    )
    assert said.code == 6
    assert "Package[fatal]/ensure: change from 'absent' to 'present' failed: Ruby has ended with exit code 3" in said.err
    assert (tmp_path / "b.crate").exists() and not (tmp_path / "c.crate").exists()
    assert len(started) == 2 and all(not child.alive for child in started)


@needs_ruby
def test_a_sensitive_value_of_such_a_resource_is_shown_nowhere(apply: Apply, tmp_path: Path) -> None:
    said = apply("user { 'a': ensure => present, provider => guest, comment => Sensitive('canary-1') }", "--debug")
    assert "canary-1" in (tmp_path / "guests").read_text()
    assert "canary" not in said.out + said.err


@needs_ruby
def test_a_provider_in_python_counts_before_one_of_its_name_in_ruby(apply: Apply, tmp_path: Path, started: list[RubyChild]) -> None:
    folder = tmp_path / "more" / "m" / "lib" / "puppet" / "provider" / "service"
    folder.mkdir(parents=True)
    (folder / "base.rb").write_text("raise 'it was loaded'")
    said = apply("service { 'x': provider => base, status => '/bin/true', ensure => running }", "--modulepath", str(tmp_path / "more"))
    assert (said.code, said.err, started) == (0, "", [])
