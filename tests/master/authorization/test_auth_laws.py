"""What holds for any rules and any question: nobody is let in by accident, and a file of rules is read or refused."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from master.authorization.auth_conf import parse
from master.authorization.rules import AccessRequest, decide
from master.endpoints.routes import default_rules
from shared.client import Client
from shared.errors import ConfigError
from tests.support.examples import examples

DEFAULTS = default_rules()
LAWS = settings(max_examples=examples(80), deadline=None, derandomize=True)

names = st.one_of(
    st.sampled_from(("agent1", "agent2", "a.b", "axb", "$1", "(", "[a-z]*", "*", ".*", "agent1\n", "AGENT1", "", "ca")),
    st.text(max_size=15),
)
verbs = st.sampled_from(("find", "search", "save", "destroy", "head"))
OWN = ("catalog", "node", "report", "facts")
clients = st.builds(Client, names, st.sampled_from(("127.0.0.1", "192.0.2.7", "::1", "", "x")), st.booleans())


def asked(kind: str, key: str) -> tuple[str, ...]:
    return (f"/{kind}/{key}", f"/puppet/v3/{kind}/{key}")


@LAWS
@given(clients, st.sampled_from(OWN), names, verbs)
def test_what_is_a_nodes_own_is_given_to_nobody_else(client: Client, kind: str, key: str, verb: str) -> None:
    for rules in (DEFAULTS.legacy, DEFAULTS.modern):
        if decide(rules, AccessRequest(asked(kind, key), verb, "production", client)).allowed:
            assert client.authenticated and client.name.lower() == key.lower() and "/" not in key


@LAWS
@given(clients, st.text("abcdefghijklmnopqrstuvwxyz_/.-", max_size=30), verbs)
def test_a_stranger_reaches_only_what_is_open(client: Client, path: str, verb: str) -> None:
    stranger = Client(client.name, client.address, False)
    opened = re.compile(r"/(certificate|certificate_request|status/v1/(simple|services))(/.*)?|/certificate_revocation_list/ca")
    for rules in (DEFAULTS.legacy, DEFAULTS.modern):
        if decide(rules, AccessRequest((f"/{path}",), verb, None, stranger)).allowed:
            assert opened.fullmatch(f"/{path}".replace("/puppet-ca/v1", "")), path


@LAWS
@given(st.sampled_from(("certificate_status", "certificate_statuses", "clean", "sign", "sign/all")), names, verbs, names)
def test_only_an_administrator_manages_certificates(what: str, key: str, verb: str, name: str) -> None:
    agent = Client(name, "192.0.2.1", True, {"pp_role": "true", "pp_cli_auth": "false"})
    for path in (f"/puppet-ca/v1/{what}", f"/puppet-ca/v1/{what}/{key}"):
        assert not decide(DEFAULTS.modern, AccessRequest((path,), verb, None, agent)).allowed


words = st.sampled_from(
    ("path", "/catalog", "~", "^/x/([^/]+)$", "method", "find", "save,", "auth", "any", "yes", "allow", "*", "$1", "agent1", "/^a/", "deny",
     "allow_ip", "10.0.0.0/8", "environment", "production", "(", "[", "999.1.1.1/99", "#", "a" * 300)
)  # fmt: skip
lines = st.lists(st.lists(st.one_of(words, st.text(max_size=8)), max_size=4).map(" ".join), max_size=12)


@LAWS
@given(lines, clients, names, verbs)
def test_any_file_of_rules_is_read_or_refused_with_its_line(text: list[str], client: Client, key: str, verb: str) -> None:
    try:
        rules = parse("\n".join(text), "auth.conf")
    except ConfigError as err:
        assert "auth.conf" in f"{err} {err.hint}"
        return
    decision = decide(rules, AccessRequest(asked("catalog", key), verb, "production", client))
    assert not decision.allowed or decision.rule in rules


@LAWS
@given(clients, names, verbs)
def test_without_rules_everything_is_denied(client: Client, key: str, verb: str) -> None:
    assert not decide((), AccessRequest(asked("catalog", key), verb, None, client)).allowed
