"""The language as a library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from language.api import CompileError, LogEntry, compile_manifest
from tests.support.documentation import ROOT, block


def titles(catalog: dict, type_name: str) -> list[str]:
    return [each["title"] for each in catalog["resources"] if each["type"] == type_name]


def test_a_manifest_is_compiled_with_facts_and_the_files_of_modules() -> None:
    modules = {
        "motd/manifests/init.pp": "class motd { file { '/etc/motd': content => epp('motd/motd.epp') } notice(motd::shout($facts['who'])) }",
        "motd/templates/motd.epp": "Hello <%= $facts['who'] %>",
        "motd/functions/shout.pp": "function motd::shout(String $text) { $text.upcase }",
    }
    said: list[LogEntry] = []
    catalog = compile_manifest("include motd", node="web1", facts={"who": "you"}, modules=modules, log=said.append)
    assert catalog["name"] == "web1" and titles(catalog, "File") == ["/etc/motd"]
    assert next(each for each in catalog["resources"] if each["type"] == "File")["parameters"]["content"] == "Hello you"
    assert [entry.message for entry in said] == ["YOU"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("notify { 'a'", "Syntax error"),
        ("include nosuch", "Could not find class ::nosuch for localhost"),
        ("lookup('k')", "Function lookup() did not find a value for the name 'k'"),
        ("puppetdb_query('nodes {}')", "There is no PuppetDB here"),
        ("generate('/bin/date')", "no programs are run here"),
        ("file('m/none')", "Could not find any files from m/none"),
    ],
)
def test_what_is_wrong_or_not_there_is_one_error(manifest: str, message: str) -> None:
    with pytest.raises(CompileError, match="(?s)" + message.replace("(", r"\(").replace(")", r"\)")):
        compile_manifest(manifest)


def test_the_program_that_the_page_on_extending_shows_prints_a_catalog() -> None:
    program = block("docs/extending.md", "python", "compile.py").body
    printed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed.splitlines()[-1] == "Package ntp {'ensure': 'latest'}"
    assert len([line for line in program.splitlines() if line]) <= 10
