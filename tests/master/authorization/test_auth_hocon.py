"""auth.conf in puppetserver's form: what its rules decide, which of them are refused, and a master that has such a file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from certs.oids import OidNames
from master.authorization.auth_conf import AuthFile
from master.authorization.auth_hocon import is_hocon, parse
from master.authorization.rules import AccessRequest, decide
from master.endpoints.routes import default_rules
from shared.client import Client
from shared.errors import ConfigError
from tests.master.authorization.puppetservers_rules import ASKED, BAD, GOOD, RULES, Asking, Parameters
from tests.support.raw_master import RunningMaster


def client_of(who: Asking) -> Client:
    names = tuple(f"DNS:{name}" for name in who.dns)
    return Client(who.name or "10.1.2.3", "10.1.2.3", bool(who.name), extensions=who.extensions, alt_names=names)


@pytest.mark.parametrize(("method", "url", "query", "who", "expected"), ASKED)
def test_a_rule_decides_as_in_puppetserver(method: str, url: str, query: Parameters, who: Asking, expected: bool) -> None:
    rules = parse(RULES, "auth.conf", OidNames())
    verb = {"put": "save", "delete": "destroy", "head": "head"}.get(method, "find")
    question = AccessRequest(("/of/3.8",), verb, None, client_of(who), url, method, query)
    assert decide(rules, question).allowed is expected


def one_rule(rule: str) -> str:
    return "authorization: {\n  version: 1\n  rules: [ " + rule + " ]\n}\n"


@pytest.mark.parametrize(("good", "bad", "message"), BAD)
def test_a_bad_rule_is_refused_with_its_name(good: str, bad: str, message: str) -> None:
    assert good in GOOD
    with pytest.raises(ConfigError) as caught:
        parse(one_rule(GOOD.replace(good, bad)), "auth.conf", OidNames())
    assert message in str(caught.value)
    assert "(file: auth.conf)" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("authorization: { rules: [] }", "The version is missing, and only 1 is known"),
        ("authorization: { version: 2, rules: [] }", "The version is '2', and only 1 is known"),
        ("authorization: { version: 1, rules: {} }", "'rules' is not a list"),
        ("{}", "There is no section 'authorization'"),
        ("authorization: { version: 1, rules: [", "The HOCON text is malformed in line 1"),
        (one_rule("5"), "The rule number 1 is not a map"),
        (one_rule(f"{GOOD}\n{GOOD}"), "Two rules are named 'mine'"),
        (one_rule(GOOD.replace('"*"', '{ rbac: { permission: "a:b:c" } }')), "asks for rbac, which only Puppet Enterprise has"),
        (one_rule(GOOD.replace('"*"', "{ extensions: { no_such_name: a } }")), "'no_such_name' is neither an OID nor a known short name"),
    ],
)
def test_a_bad_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "auth.conf", OidNames())
    assert message in str(caught.value)


def test_a_key_that_nobody_reads_is_told(caplog: pytest.LogCaptureFixture) -> None:
    parse(one_rule(GOOD.replace("type: path", "type: path, query_params: { a: b }")), "auth.conf", OidNames())
    assert "auth.conf: the rule 'mine': the key 'query_params' means nothing; did you mean 'query-params'?" in caplog.text


def test_a_name_of_a_sites_own_extension_is_known() -> None:
    names = OidNames({"1.3.6.1.4.1.34380.1.2.1": "shift"})
    for written in ("shift", '"1.3.6.1.4.1.34380.1.2.1"'):
        rules = parse(one_rule(GOOD.replace('"*"', "{ extensions: { " + written + ": night } }")), "auth.conf", names)
        for value, expected in (("night", True), ("day", False)):
            question = AccessRequest((), "find", None, client_of(Asking(extensions={"shift": value})), "/x", "get")
            assert decide(rules, question).allowed is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a\n// b\n\nauthorization {\n", True),
        ('{ "authorization": {} }', True),
        ("authorization.version = 1\n", True),
        ("anyone = {name: a}\nauthorization {\n", True),
        ('my-rules."a b" += { name: a }\n', True),
        ("authorization.rules += { name: a }\n", True),
        ("path ~ ^/x=\nallow *\n", False),
        ("# authorization: {}\npath /x\nallow *\n", False),
        ("", False),
    ],
)
def test_the_form_of_a_file_is_recognised(text: str, expected: bool) -> None:
    assert is_hocon(text) is expected


def test_rules_may_be_appended_one_by_one() -> None:
    one = "{ match-request: { path: /p, type: path }, allow: a, sort-order: 1, name: "
    appended = "".join(f'authorization.rules += {one} "r{number:03}" }}\n' for number in range(150))
    rules = parse(f"authorization.version = 1\n{appended}", "auth.conf", OidNames())
    assert [rule.name for rule in rules] == [f"r{number:03}" for number in range(150)]  # type: ignore[attr-defined]
    inside = "".join(f'rules += {one} "r{number:03}" }}\n' for number in range(150))
    assert len(parse(f"authorization {{\nversion = 1\n{inside}}}", "auth.conf", OidNames())) == 150


Serve = Callable[..., AbstractAsyncContextManager[RunningMaster]]
SITE = one_rule(
    '{ match-request: { path: "^/puppet/v3/node/([^/]+)$", type: regex, method: get }, allow: "$1", sort-order: 1, name: "node" }\n'
    '{ match-request: { path: "/puppet/v3/environments", type: path }, allow: "*", sort-order: 1, name: "environments" }\n'
    '{ match-request: { path: "/puppet/v3/facts", type: path, query-params: { environment: production } }, allow: agent1, sort-order: 1, '
    'name: "facts" }\n'
)


async def test_a_master_holds_both_schemes_against_such_a_file(serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    (tmp_path / "auth.conf").write_text(SITE)
    asked: list[tuple[str, str, int]] = [
        ("GET", "/puppet/v3/node/agent1?environment=production", 200),
        ("GET", "/production/node/agent1", 200),
        ("GET", "/puppet/v3/node/agent2?environment=production", 403),
        ("GET", "/production/node/agent2", 403),
        ("GET", "/puppet/v3/environments", 200),
        ("GET", "/v2.0/environments", 200),
        ("PUT", "/production/facts/agent1", 200),
        ("GET", "/puppet/v3/catalog/agent1?environment=production", 403),  # nothing stands behind the file
        ("GET", "/production/catalog/agent1", 403),
        ("GET", "/status/v1/simple", 403),
    ]
    async with serve(auth_conf=tmp_path / "auth.conf") as master:
        agent = await master.client("agent1")
        for method, target, status in asked:
            body: dict[str, Any] = {"body": b'{"name":"agent1","values":{}}', "Content_Type": "text/pson"} if method == "PUT" else {}
            answer = await agent.ask(method, target, **body)
            assert (target, answer.status) == (target, status)
    assert "access to '/node/agent2' [find]; the rule that decided: node" in caplog.text
    assert "access to '/catalog/agent1' [find]; the rule that decided: none" in caplog.text


async def test_a_file_may_change_its_form(tmp_path: Path) -> None:
    path = tmp_path / "auth.conf"
    path.write_text("path /facts\nallow *\n")
    now = 0.0
    file = AuthFile(path, default_rules(), filetimeout=15, clock=lambda: now)
    await file.start()
    path.write_text(SITE)
    now = 15.0
    assert [rule.name for rule in (await file.rules()).modern] == ["environments", "facts", "node"]
