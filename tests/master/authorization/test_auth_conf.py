"""Rules: reading auth.conf, evaluating it, the defaults; all without a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from master.authorization.auth_conf import AuthFile, parse
from master.authorization.rules import AccessRequest, decide
from master.endpoints.routes import default_rules
from shared.client import Client
from shared.errors import ConfigError


def who(name: str = "web1.example.com", address: str = "10.1.2.3", *, authenticated: bool = True, **extensions: str) -> Client:
    return Client(name=name, address=address, authenticated=authenticated, extensions=extensions)


def ask(text: str, path: str, verb: str = "find", client: Client | None = None, environment: str = "production") -> bool:
    return decide(parse(text, "auth.conf"), AccessRequest((path,), verb, environment, client or who())).allowed


CASES = [
    # a rule's path is a bare prefix in a site's own file
    ("path /certificate\nallow *", "/certificate_request/x", "find", True),
    ("path /facts\nallow *", "/fact/x", "find", False),
    # nothing applies: no
    ("", "/facts/x", "find", False),
    # methods
    ("path /facts\nmethod find, search\nallow *", "/facts/x", "find", True),
    ("path /facts\nmethod find, search\nallow *", "/facts/x", "save", False),
    # the first rule that applies decides, also with no
    ("path /facts\nallow other\npath /facts\nallow *", "/facts/x", "find", False),
    ("path /facts\nmethod save\nallow other\npath /facts\nallow *", "/facts/x", "find", True),
    # captures
    ("path ~ ^/catalog/([^/]+)$\nallow $1", "/catalog/web1.example.com", "find", True),
    ("path ~ ^/catalog/([^/]+)$\nallow $1", "/catalog/web2.example.com", "find", False),
    ("path ~ ^/catalog/(\\w+)\nallow $1.example.com", "/catalog/web1", "find", True),
    ("path ~ ^/catalog/(\\w+)\\.(.*)$\nallow $2.$1, $1.$2", "/catalog/web1.example.com", "find", True),
    ("path ~ /b\nallow *", "/a/b", "find", True),
    # environments
    ("path /facts\nenvironment test, dev\nallow *", "/facts/x", "find", False),
    ("path /facts\nenvironment production\nallow *", "/facts/x", "find", True),
    # names
    ("path /\nallow web1.example.com", "/x", "find", True),
    ("path /\nallow WEB1.Example.COM", "/x", "find", True),
    ("path /\nallow web1.example.co", "/x", "find", False),
    ("path /\nallow *.example.com", "/x", "find", True),
    ("path /\nallow *.com", "/x", "find", True),
    ("path /\nallow *.ample.com", "/x", "find", False),
    ("path /\nallow /^web\\d+\\./", "/x", "find", True),
    ("path /\nallow /^db/", "/x", "find", False),
    ("path /\nallow web1.example.com, other # why", "/x", "find", True),
    # the most specific entry that fits wins, deny before allow
    ("path /\nallow *.example.com\ndeny web1.example.com", "/x", "find", False),
    ("path /\nallow web1.example.com\ndeny *.example.com", "/x", "find", True),
    ("path /\nallow *.com\ndeny *.example.com", "/x", "find", False),
    ("path /\nallow web1.example.com\ndeny web1.example.com", "/x", "find", False),
    ("path /\nallow *\ndeny web1.example.com", "/x", "find", True),
    # addresses
    ("path /\nallow_ip 10.1.2.3", "/x", "find", True),
    ("path /\nallow_ip 10.1.0.0/16", "/x", "find", True),
    ("path /\nallow_ip 10.1.*", "/x", "find", True),
    ("path /\nallow_ip 10.2.*", "/x", "find", False),
    ("path /\nallow_ip 10.1.0.0/16\ndeny_ip 10.1.2.3", "/x", "find", False),
    ("path /\nallow_ip fe80::/10", "/x", "find", False),
    # HEAD is allowed where find or save is
    ("path /\nmethod save\nallow *", "/x", "head", True),
    ("path /\nmethod destroy\nallow *", "/x", "head", False),
]


@pytest.mark.parametrize(("text", "path", "verb", "expected"), CASES)
def test_a_rule_decides_as_in_3_8(text: str, path: str, verb: str, expected: bool) -> None:
    assert ask(text, path, verb) is expected


@pytest.mark.parametrize(
    ("auth", "authenticated", "expected"),
    [("", False, False), ("auth yes", False, False), ("auth any", False, True), ("auth no", False, True), ("auth any", True, True)],
)
def test_rules_are_for_authenticated_clients_unless_they_say_otherwise(auth: str, authenticated: bool, expected: bool) -> None:
    assert ask(f"path /x\n{auth}\nallow *", "/x", client=who(authenticated=authenticated)) is expected


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("allow *", "Missing or invalid 'path' before right directive at line 1 of auth.conf", 1),
        ("path /x\nbogus y", "Invalid line 2: bogus y", 2),
        (" path /x", "Invalid line 1", 1),
        ("path /x y", "Invalid line 1", 1),
        ("path x", "does not begin with '/'", 1),
        ("path ~ ^/(x", "is not valid", 1),
        ("path /x\nmethod head", "'head' is not an allowed value for method directive", 2),
        ("path /x\nmethod find, find", "'find' is already in the '/x' ACL", 2),
        ("path /x\nauth maybe", "'maybe' incorrect authentication value", 2),
        ("path /x\ndeny *", "Invalid pattern *", 2),
        ("path /x\nallow a b", "Invalid pattern a b", 2),
        ("path /x\nallow_ip x", "Invalid IP pattern x", 2),
    ],
)
def test_a_file_with_an_error_is_refused_with_its_place(text: str, message: str, line: int) -> None:
    with pytest.raises(ConfigError, match=None) as caught:
        parse(text, "auth.conf")
    assert message in str(caught.value)
    assert str(caught.value).endswith(f"(file: auth.conf, line: {line})")


SHIPPED = """
# as Puppet 3.8 ships it
path ~ ^/catalog/([^/]+)$
method find
allow $1

path ~ ^/node/([^/]+)$
method find
allow $1

path /certificate_revocation_list/ca
method find
allow *

path ~ ^/report/([^/]+)$
method save
allow $1

path /file
allow *

path /certificate/ca
auth any
method find
allow *

path /certificate/
auth any
method find
allow *

path /certificate_request
auth any
method find, save
allow *

path /v2.0/environments
method find
allow *

path /
auth any
"""


def test_the_shipped_file_gets_only_the_missing_default_and_it_is_never_reached(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "puppet.auth")
    rules = default_rules().after(parse(SHIPPED, "auth.conf"))
    assert [record.getMessage() for record in caplog.records] == ["Inserting default '/status' (auth true) ACL"]
    assert not decide(rules.legacy, AccessRequest(("/status/x",), "find", "production", who())).allowed


def test_the_shipped_file_leaves_the_defaults_of_scheme_b_in_reach() -> None:
    rules = default_rules().after(parse(SHIPPED, "auth.conf"))
    anonymous = who(authenticated=False)
    crl = ("/certificate_revocation_list/ca", "/puppet-ca/v1/certificate_revocation_list/ca")
    assert decide(rules.modern, AccessRequest(crl, "find", None, anonymous)).allowed
    assert decide(rules.modern, AccessRequest(("/facts/web1.example.com",), "save", "production", who())).allowed
    assert not decide(rules.modern, AccessRequest(("/facts/other",), "save", "production", who())).allowed
    assert not decide(rules.modern, AccessRequest(("/resource/x",), "find", "production", who())).allowed


def test_a_sites_rule_counts_in_both_schemes_by_either_path() -> None:
    rules = default_rules().after(parse("path /catalog\nallow admin\npath ~ ^/puppet/v3/tasks\nallow ops\n", "auth.conf"))
    asked = AccessRequest(("/catalog/web1", "/puppet/v3/catalog/web1"), "find", "production", who("admin"))
    assert decide(rules.legacy, asked).allowed
    assert decide(rules.modern, asked).allowed
    assert not decide(rules.modern, AccessRequest(asked.paths, "find", "production", who("web1"))).allowed
    assert decide(rules.modern, AccessRequest(("/tasks/", "/puppet/v3/tasks/x"), "find", None, who("ops"))).allowed


DEFAULTS = [
    # path, verb, authenticated, own name: scheme A, scheme B
    ("/catalog/me", "find", True, True, True),
    ("/catalog/other", "find", True, False, False),
    ("/catalog/me", "save", True, False, False),
    ("/catalog/me", "find", False, False, False),
    ("/node/me", "find", True, True, True),
    ("/report/me", "save", True, True, True),
    ("/report/other", "save", True, False, False),
    ("/facts/me", "save", True, False, True),
    ("/facts/me", "find", True, False, False),
    ("/file_metadata/modules/x", "search", True, True, True),
    ("/file_content/modules/x", "find", True, True, True),
    ("/file_content/modules/x", "find", False, False, False),
    ("/file_bucket_file/md5/x", "head", True, True, True),
    ("/file_bucket_filed/md5/x", "find", True, False, False),
    ("/filed", "find", True, False, False),
    ("/certificate/ca", "find", False, True, True),
    ("/certificate/other", "find", False, True, True),
    ("/certificate_request/other", "save", False, True, True),
    ("/certificate_request/other", "destroy", True, False, False),
    ("/certificate_requestX/a", "find", True, False, False),
    ("/certificate_revocation_list/ca", "find", True, True, True),
    ("/certificate_revocation_list/ca", "find", False, False, True),
    ("/certificate_status/me", "find", True, False, False),
    ("/status/x", "find", True, True, False),
    ("/resource/user/root", "find", True, False, False),
    ("/resource_type/x", "find", True, False, False),
    ("/run/x", "save", True, False, False),
]


@pytest.mark.parametrize(("path", "verb", "authenticated", "legacy", "modern"), DEFAULTS)
def test_the_defaults_are_those_of_the_reference(path: str, verb: str, authenticated: bool, legacy: bool, modern: bool) -> None:
    question = AccessRequest((path,), verb, "production", who("me", authenticated=authenticated))
    assert decide(default_rules().legacy, question).allowed is legacy
    assert decide(default_rules().modern, question).allowed is modern


def test_only_administrators_reach_the_status_of_certificates() -> None:
    question = AccessRequest(("/certificate_status/x",), "save", None, who("cli", pp_cli_auth="true"))
    assert decide(default_rules().modern, question).allowed
    assert not decide(default_rules().legacy, question).allowed
    forged = who("cli", authenticated=False, pp_cli_auth="true")
    assert not decide(default_rules().modern, AccessRequest(("/certificate_status/x",), "save", None, forged)).allowed


async def test_a_changed_file_counts_after_filetimeout_and_a_broken_one_does_not(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "auth.conf"
    path.write_text("path /facts\nallow *\n")
    file = AuthFile(path, default_rules(), filetimeout=15, clock=lambda: now)
    await file.start()
    facts = AccessRequest(("/facts/x",), "find", "production", who())

    async def open_() -> bool:
        return decide((await file.rules()).legacy, facts).allowed

    assert await open_()
    path.write_text("path /facts\nallow other\n")
    os.utime(path, ns=(1, 1))
    assert await open_()
    now = 15.0
    assert not await open_()
    path.write_text("nonsense\n")
    now = 30.0
    assert not await open_()
    path.write_text("path /facts\nallow *\n")
    os.utime(path, ns=(2, 2))
    now = 45.0
    assert await open_()
    path.unlink()
    now = 60.0
    assert not await open_()


async def test_a_broken_file_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "auth.conf"
    path.write_text("allow *\n")
    with pytest.raises(ConfigError):
        await AuthFile(path, default_rules()).start()


async def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    file = AuthFile(tmp_path / "missing", default_rules())
    await file.start()
    assert await file.rules() == default_rules()
