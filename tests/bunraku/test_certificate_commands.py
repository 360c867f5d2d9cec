"""`puppet cert`, `puppet ca` and `puppet certificate` from the command line's words to the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunraku.commands import ca, cert, certificate
from certs.files import bundles
from shared.errors import ConfigError, NotFound


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    folders = ["--confdir", str(tmp_path), *(f"--{name}={tmp_path / 'var' / name}" for name in ("vardir", "logdir", "rundir"))]
    return [*folders, "--certname", "m.example.com", "--key_type", "ec"]


def test_the_settings_place_the_ca_and_options_may_stand_anywhere(places, tmp_path: Path, capsys) -> None:
    assert cert.main([*places, "generate", "--dns_alt_names", "www,w2", "web1"]) == 0
    assert cert.main(["list", *places, "--all"]) == 0
    out = capsys.readouterr().out
    assert '+ "web1" (SHA256)' in out
    assert '(alt names: "DNS:w2", "DNS:web1", "DNS:www")' in out
    assert (tmp_path / "ssl" / "ca" / "signed" / "web1.pem").exists()
    assert ca.main(["revoke", "nobody", *places]) == 1
    assert cert.main(["revoke", "nobody", *places]) == 24


def test_a_host_that_is_no_ca_exits_23_and_makes_nothing(places, tmp_path: Path, capsys) -> None:
    (tmp_path / "puppet.conf").write_text("[master]\nca = false\n")
    assert cert.main(["list", *places]) == 23
    assert "the setting ca is false" in capsys.readouterr().err
    assert not (tmp_path / "ssl").exists()


def test_a_local_certificate_is_found_and_the_location_is_required(places, capsys) -> None:
    cert.main(["generate", "web1", *places])
    capsys.readouterr()
    assert certificate.main(["find", "ca", "--ca-location", "local", *places]) == 0
    assert bundles.certificates(capsys.readouterr().out.encode())
    with pytest.raises(NotFound, match="Could not find certificate nobody"):
        certificate.main(["find", "nobody", "--ca-location=only", *places])
    for words in (["list"], ["list", "--ca-location", "moon"]):
        with pytest.raises(ConfigError, match="ca-location"):
            certificate.main([*words, *places])


def test_without_words_the_commands_say_how_they_are_used(capsys) -> None:
    assert cert.main([]) == ca.main(["--help"]) == certificate.main([]) == 0
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
    assert cert.main([*words.split(), *places]) == 23
    said = capsys.readouterr()
    assert said.out == ""
    assert f"There is no CA in {tmp_path}/ssl/ca" in said.err and "sudo" in said.err and "machine" in said.err
    assert list(tmp_path.iterdir()) == []
    assert ca.main([*words.split(), *places]) == 1
    assert list(tmp_path.iterdir()) == []


def test_lists_and_fingerprints_are_json_for_scripts(places, capsys) -> None:
    for name in ("web1", "web2"):
        assert cert.main(["generate", name, *places]) == 0
    cert.main(["revoke", "web2", *places])
    capsys.readouterr()
    assert cert.main(["list", "--all", "--json", *places]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {state: [each["name"] for each in listed[state]] for state in ("requested", "signed", "revoked")} == {
        "requested": [],
        "signed": ["web1"],
        "revoked": ["web2"],
    }
    assert listed["revoked"][0]["problem"] == "certificate revoked" and "problem" not in listed["signed"][0]
    assert cert.main(["list", "--json", *places]) == 0
    assert json.loads(capsys.readouterr().out) == {"requested": [], "signed": [], "revoked": [], "missing": []}
    assert cert.main(["list", "--json", "web1", "nosuch", *places]) == 24
    assert json.loads(capsys.readouterr().out)["missing"] == ["nosuch"]
    assert cert.main(["fingerprint", "web1", "ca", "--json", *places]) == 0
    digests = json.loads(capsys.readouterr().out)
    assert digests["web1"] == {"digest": "SHA256", "fingerprint": listed["signed"][0]["fingerprint"]} and set(digests) == {"web1", "ca"}
    assert cert.main(["sign", "--all", "--json", *places]) == 1


def test_options_of_the_ca_are_those_of_the_local_face_too(places, capsys) -> None:
    local = ["--ca-location", "local", *places]
    assert certificate.main(["generate", "web1", "--dns-alt-names", "www", *local]) == 0
    capsys.readouterr()
    assert certificate.main(["list", "--all", "--json", *local]) == 0
    (signed,) = json.loads(capsys.readouterr().out)["signed"]
    assert (signed["name"], "DNS:www" in signed["dns_alt_names"]) == ("web1", True)
    with pytest.raises(ConfigError, match=r"^--json is no option of puppet certificate destroy$"):
        certificate.main(["destroy", "web1", "--json", *local])
    assert certificate.main(["destroy", "web1", *local]) == 0
