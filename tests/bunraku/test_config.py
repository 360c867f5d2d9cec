from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Puppet

TEXT = """\
# ours
[main]
server = a

[agent]
# keep this
runinterval = 1h
"""


@pytest.fixture
def conf(file: Callable[[str, str], Path]) -> Path:
    return file("conf/puppet.conf", TEXT)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["print", "server"], "a\n"),
        (["server"], None),
        (["print", "runinterval"], "1800\n"),
        (["print", "runinterval", "--section", "agent"], "3600\n"),
        (["print", "runinterval", "--section=agent"], "3600\n"),
        (["print", "server", "runinterval"], "runinterval = 1800\nserver = a\n"),
        (["print", "nosuch"], "\n"),
        (["print", "nosuch", "server"], "nosuch = \nserver = a\n"),
        (["print", "serverport"], "8140\n"),
        (["print", "store", "--section", "server"], "sqlite\n"),  # what a running master has
        (["print", "store"], "none\n"),
        (["print", "maxwaitforcert"], "unlimited\n"),
        (["print", "server", "--server", "b"], "b\n"),
        (["print", "noop", "--noop"], "true\n"),
    ],
)
def test_print_shows_what_is_in_force(words: list[str], printed: str | None, puppet: Puppet, conf: Path) -> None:
    said = puppet("config", *words)
    if printed is None:
        assert (said.code, said.err) == (1, "Error: 'config' has no 'server' action.  See `puppet help config`.\n")
    else:
        assert (said.code, said.out, said.err) == (0, printed, "")


@pytest.mark.parametrize("words", [["print", "sever"], ["set", "sever", "x"]], ids=" ".join)
def test_a_name_that_is_nearly_that_of_a_setting_is_a_warning(words: list[str], puppet: Puppet, conf: Path) -> None:
    said = puppet("config", *words)
    assert (said.code, said.err) == (0, "Warning: Unknown setting sever. Did you mean server?\n")


@pytest.mark.parametrize("words", [["print"], ["print", "all"], []])
def test_print_shows_all_settings_sorted(words: list[str], puppet: Puppet, conf: Path) -> None:
    lines = puppet("config", *words).out.splitlines()
    names = [line.split(" = ")[0] for line in lines]
    assert names == sorted(names)
    assert {"autosign", "certname", "server", "waitforcert"} <= set(names)
    assert f"confdir = {puppet.conf}" in lines


@pytest.mark.parametrize("form", [["--json"], ["--render-as", "json"], ["--render-as=json"]])
def test_print_as_json_is_an_object_by_name(form: list[str], puppet: Puppet, conf: Path) -> None:
    assert json.loads(puppet("config", "print", "server", "runinterval", *form).out) == {"server": "a", "runinterval": "1800"}


def test_set_changes_one_line_and_keeps_the_rest(puppet: Puppet, conf: Path) -> None:
    assert puppet("config", "set", "runinterval", "2h", "--section", "agent").code == 0
    assert conf.read_text() == TEXT.replace("1h", "2h")


def test_set_adds_a_setting_to_its_section(puppet: Puppet, conf: Path) -> None:
    assert puppet("config", "set", "new-thing", "x y").code == 0
    assert conf.read_text() == TEXT.replace("server = a\n", "server = a\nnew_thing = x y\n")


def test_set_makes_the_file_and_the_section(puppet: Puppet) -> None:
    assert puppet("config", "set", "server", "b", "--section", "agent").code == 0
    assert (puppet.conf / "puppet.conf").read_text() == "[agent]\nserver = b\n"


def test_set_refuses_a_value_that_could_not_be_read_and_changes_nothing(puppet: Puppet, conf: Path) -> None:
    said = puppet("config", "set", "runinterval", "often")
    assert said.code == 1
    assert said.err.startswith("Error: Could not set runinterval: Invalid duration format 'often'")
    assert conf.read_text() == TEXT


def test_delete_takes_the_line_out_and_leaves_the_header(puppet: Puppet, conf: Path) -> None:
    said = puppet("config", "delete", "runinterval", "--section", "agent")
    assert (said.code, said.out) == (0, "Deleted setting from 'agent': 'runinterval = 1h'\n")
    assert conf.read_text() == TEXT.replace("runinterval = 1h\n", "")


def test_delete_of_what_is_not_there_is_only_a_warning(puppet: Puppet, conf: Path) -> None:
    said = puppet("config", "delete", "nosuch")
    assert (said.code, said.out) == (0, "")
    assert said.err == "Warning: No setting found in configuration file for section 'main' setting name 'nosuch'\n"
    assert conf.read_text() == TEXT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "server"], "puppet config set takes 2 arguments, but you gave 1\nTry 'puppet help config set' for usage"),
        (["delete"], "puppet config delete takes 1 argument, but you gave 0\nTry 'puppet help config delete' for usage"),
        (["frob"], "'config' has no 'frob' action.  See `puppet help config`."),
        (["print", "--frob"], "Could not parse application options: invalid option: --frob\nTry 'puppet config --help'."),
        (["print", "--section"], "Could not parse application options: missing argument: --section"),
        (["print", "--render-as", "xml"], "I don't know how to render 'xml'\nThere are console, s, json."),
        (["print", "--noop=false"], "needless argument: --noop=false\nWrite --noop for true, --no-noop for false."),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words: list[str], message: str, puppet: Puppet) -> None:
    said = puppet("config", *words)
    assert (said.code, said.out, said.err) == (1, "", f"Error: {message}\n")


def test_a_broken_puppet_conf_is_named_with_its_line(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    path = file("conf/puppet.conf", "[main]\nserver a\n")
    said = puppet("config", "print", "server")
    assert said.code == 1
    assert f"Could not match line 'server a' (file: {path}, line: 2)" in said.err


def test_print_shows_where_the_environments_manifests_and_modules_are(puppet: Puppet, conf: Path, file: Callable[[str, str], Path]) -> None:
    environment = file("conf/code/environments/production/manifests/site.pp", "").parents[1]
    assert puppet("config", "print", "manifest").out == f"{environment}/manifests\n"
    assert puppet("config", "print", "modulepath", "--section", "server").out.startswith(f"{environment}/modules:")
    file("conf/code/environments/other/environment.conf", "modulepath = /m:$basemodulepath\nmanifest = /site.pp\nconfig_version = /bin/v\n")
    said = puppet("config", "print", "modulepath", "manifest", "config_version", "--environment", "other").out
    assert said.splitlines()[0] == "config_version = /bin/v"
    assert "manifest = /site.pp\nmodulepath = /m:" in said
    assert puppet("config", "print", "modulepath", "--environment", "nosuch").out == "\n"


def test_print_shows_the_modules_of_all_environments_where_there_is_none(puppet: Puppet, conf: Path) -> None:
    assert puppet("config", "print", "modulepath").out == puppet("config", "print", "basemodulepath").out
    assert puppet("config", "print", "manifest").out == "no_manifest\n"
    assert puppet("config", "print", "priority").out == "\n"


def test_print_shows_settings_that_nothing_reads(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    file("conf/puppet.conf", "[main]\nprivatedir = $ssldir/p\nautoflush = false\n")
    said = puppet("config", "print", "privatedir", "autoflush", "serial")
    ssldir = puppet.conf / "ssl"
    assert said.out == f"autoflush = false\nprivatedir = {ssldir}/p\nserial = {ssldir}/ca/serial\n"


def test_set_refuses_what_would_be_refused_at_a_start(puppet: Puppet, conf: Path) -> None:
    said = puppet("config", "set", "cakey", "/elsewhere", "--section", "server")
    assert said.code == 1 and "cakey" in said.err and "cadir" in said.err
    assert conf.read_text() == TEXT
