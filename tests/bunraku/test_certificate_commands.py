"""`puppet cert`, `puppet ca` and `puppet certificate` from the command line's words to the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunraku.commands import certificates
from certs.files import bundles
from shared.errors import ConfigError, NotFound


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    folders = ["--confdir", str(tmp_path), *(f"--{name}={tmp_path / 'var' / name}" for name in ("vardir", "logdir", "rundir"))]
    return [*folders, "--certname", "m.example.com", "--key_type", "ec"]


def test_the_settings_place_the_ca_and_options_may_stand_anywhere(places, tmp_path: Path, capsys) -> None:
    assert certificates.cert([*places, "generate", "--dns_alt_names", "www,w2", "web1"]) == 0
    assert certificates.cert(["list", *places, "--all"]) == 0
    out = capsys.readouterr().out
    assert '+ "web1" (SHA256)' in out
    assert '(alt names: "DNS:w2", "DNS:web1", "DNS:www")' in out
    assert (tmp_path / "ssl" / "ca" / "signed" / "web1.pem").exists()
    assert certificates.ca(["revoke", "nobody", *places]) == 1
    assert certificates.cert(["revoke", "nobody", *places]) == 24


def test_a_host_that_is_no_ca_exits_23_and_makes_nothing(places, tmp_path: Path, capsys) -> None:
    (tmp_path / "puppet.conf").write_text("[master]\nca = false\n")
    assert certificates.cert(["list", *places]) == 23
    assert "the setting ca is false" in capsys.readouterr().err
    assert not (tmp_path / "ssl").exists()


def test_a_local_certificate_is_found_and_the_location_is_required(places, capsys) -> None:
    certificates.cert(["generate", "web1", *places])
    capsys.readouterr()
    assert certificates.certificate(["find", "ca", "--ca-location", "local", *places]) == 0
    assert bundles.certificates(capsys.readouterr().out.encode())
    with pytest.raises(NotFound, match="Could not find certificate nobody"):
        certificates.certificate(["find", "nobody", "--ca-location=only", *places])
    for words in (["list"], ["list", "--ca-location", "moon"]):
        with pytest.raises(ConfigError, match="ca-location"):
            certificates.certificate([*words, *places])


def test_without_words_the_commands_say_how_they_are_used(capsys) -> None:
    assert certificates.cert([]) == certificates.ca(["--help"]) == certificates.certificate([]) == 0
    assert capsys.readouterr().out.count("Usage: puppet") == 3


@pytest.mark.parametrize(
    "words",
    [
        "list",
        "list --all --json",
        "sign web1",
        "sign --all",
        "revoke web1",
        "clean web1",
        "print web1",
        "fingerprint ca",
        "verify web1",
        "reinventory",
    ],
)
def test_without_a_ca_nothing_is_made_but_by_generate(words: str, places, tmp_path: Path, capsys) -> None:
    assert certificates.cert([*words.split(), *places]) == 23
    said = capsys.readouterr()
    assert said.out == ""
    assert f"There is no CA in {tmp_path}/ssl/ca" in said.err and "sudo" in said.err and "machine" in said.err
    assert list(tmp_path.iterdir()) == []
    assert certificates.ca([*words.split(), *places]) == 1
    assert list(tmp_path.iterdir()) == []


def test_lists_and_fingerprints_are_json_for_scripts(places, capsys) -> None:
    for name in ("web1", "web2"):
        assert certificates.cert(["generate", name, *places]) == 0
    certificates.cert(["revoke", "web2", *places])
    capsys.readouterr()
    assert certificates.cert(["list", "--all", "--json", *places]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {state: [each["name"] for each in listed[state]] for state in ("requested", "signed", "revoked")} == {
        "requested": [],
        "signed": ["web1"],
        "revoked": ["web2"],
    }
    assert listed["revoked"][0]["problem"] == "certificate revoked" and "problem" not in listed["signed"][0]
    assert certificates.cert(["list", "--json", *places]) == 0
    assert json.loads(capsys.readouterr().out) == {"requested": [], "signed": [], "revoked": [], "missing": []}
    assert certificates.cert(["list", "--json", "web1", "nosuch", *places]) == 24
    assert json.loads(capsys.readouterr().out)["missing"] == ["nosuch"]
    assert certificates.cert(["fingerprint", "web1", "ca", "--json", *places]) == 0
    digests = json.loads(capsys.readouterr().out)
    assert digests["web1"] == {"digest": "SHA256", "fingerprint": listed["signed"][0]["fingerprint"]} and set(digests) == {"web1", "ca"}
    assert certificates.cert(["sign", "--all", "--json", *places]) == 1
