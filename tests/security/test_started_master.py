"""
The corpus of the HTTP rows, and requests made up from the OpenAPI document, against a started master.

Whatever is sent: no 5xx, no hang, nothing of another node, and the next good request is answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from master import bindings
from master.endpoints import ca
from shared.indirector.core import Indirection
from tests.support.examples import examples
from tests.support.master_openapi import SERVED, document, documented_routes, text
from tests.support.started import CANARY, OPEN, Answered, Started, started

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = document()
PATHS: dict[str, Any] = DOCUMENT["paths"]


def test_the_document_is_that_of_the_code() -> None:
    stored = (ROOT / "docs/api/openapi.yaml").read_text()
    assert stored == text(), "run make openapi"


def test_every_remote_indirection_and_every_endpoint_of_the_ca_is_in_it() -> None:
    remote = {each.name for each in vars(bindings).values() if isinstance(each, Indirection) and each.remote}
    documented = {path.split("/")[3] for path in PATHS if path.startswith("/puppet-ca/v1/")}
    assert remote == {each.name for each in SERVED} | (remote & documented)
    assert documented == set(ca._HANDLERS)


QUICK = {"header_timeout": "3", "body_timeout": "3"}  # seconds, after which who says nothing more is not waited for


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("site"), **QUICK) as made:
        yield made


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A master whose rules let everybody do everything."""
    with started(tmp_path_factory.mktemp("open"), auth=OPEN, **QUICK) as made:
        yield made


def check(answer: Answered, *what: object) -> None:
    assert answer.status < 500 or answer.status == 503, (*what, answer)
    assert CANARY.encode() not in answer.body and b"PRIVATE KEY" not in answer.body, (*what, answer)
    assert b"Traceback" not in answer.body and b"aiohttp" not in answer.body, (*what, answer)


def filled(path: str, value: str) -> str:
    """A path of the document with `value` for its last parameter."""
    before, brace, _ = path.rpartition("{")
    return before.replace("{environment}", "production") + value if brace else path


# --- the corpus of section 5.3

CLIMBS = [
    "../{}",
    "../../{}",
    "../../../../../../../../etc/passwd",
    "/etc/passwd",
    "agent1/../agent2",
    "..",
    ".",
    "modules/open/../../../{}",
]
SPELLINGS = {
    "raw": lambda text: text,
    "%2e%2e%2f": lambda text: text.replace(".", "%2e").replace("/", "%2f"),
    "..%2f": lambda text: text.replace("/", "%2f"),
    "%2E%2e/": lambda text: text.replace("..", "%2E%2e"),
    "..%5c": lambda text: text.replace("/", "%5c"),
    "%252e": lambda text: text.replace(".", "%252e").replace("/", "%252f"),
    "overlong": lambda text: text.replace(".", "%c0%ae").replace("/", "%c0%af"),
    "mixed": lambda text: text.replace("/", "%2F").replace(".", "%2e"),
}


@pytest.mark.slow
@pytest.mark.parametrize("who", [None, "agent1"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_HTTP_01_02_03_no_spelling_of_a_path_leads_elsewhere(site: Started, spelling: str, who: str | None) -> None:
    for path in PATHS:
        if "{" not in path:
            continue
        for climb in CLIMBS:
            target = filled(path, SPELLINGS[spelling](climb.format("outside")))
            check(site.ask("GET", target, name=who), target)
    site.check_alive()


@pytest.mark.slow
@pytest.mark.parametrize("who", [None, "agent1"])
def test_HTTP_02_ACL_another_nodes_name_in_any_parameter_shows_nothing_of_it(site: Started, who: str | None) -> None:
    names = ["agent2", "agent1/../agent2", "%61gent2", "AGENT2", "agent2%00", "agent2%0a", "agent2.", "agent%32", "*", "agent1,agent2"]
    for path, operations in PATHS.items():
        for method in operations:
            for name in names if "{" in path else [""]:
                target = filled(path, name)
                if "certificate" in target and method == "get":
                    continue  # certificates are for everybody
                check(site.ask(method.upper(), f"{target}?environment=production&node=agent2&certname=agent2", name=who), method, target)
    site.check_alive()


HEAD = b"Host: localhost\r\nAccept: */*\r\n"
NODE = b"/puppet/v3/node/agent1?environment=production"
PUT = b"PUT /puppet/v3/facts/agent1?environment=production HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n"
FACTS = b'{"name":"agent1","values":{}}'
RAW = {
    "bytes that are no text": b"GET /puppet/v3/node/\x80\xff HTTP/1.1\r\n" + HEAD + b"\r\n",
    "a broken escape": b"GET /puppet/v3/node/%zz HTTP/1.1\r\n" + HEAD + b"\r\n",
    "%u escapes": b"GET /puppet/v3/node/%u002e HTTP/1.1\r\n" + HEAD + b"\r\n",
    "an absolute target": b"GET http://evil" + NODE + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
    "CONNECT": b"CONNECT evil:443 HTTP/1.1\r\n" + HEAD + b"\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\n" + HEAD + b"\r\n",
    "two hosts": b"GET " + NODE + b" HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no host": b"GET " + NODE + b" HTTP/1.1\r\n\r\n",
    "a length and chunks": PUT + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "two lengths": PUT + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
    "a signed length": PUT + b"Content-Length: +5\r\n\r\nabcde",
    "a hexadecimal length": PUT + b"Content-Length: 0x5\r\n\r\nabcde",
    "a negative chunk": PUT + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "an unknown coding": PUT + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "lines ended by LF alone": b"GET " + NODE + b" HTTP/1.1\nHost: x\n\n",
    "HTTP/0.9": b"GET /status/v1/simple\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a version from the future": b"GET /status/v1/simple HTTP/1.9\r\n" + HEAD + b"\r\n",
    "300 headers": b"GET " + NODE + b" HTTP/1.1\r\n" + HEAD + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n",
    "a header of 64 KiB": b"GET " + NODE + b" HTTP/1.1\r\n" + HEAD + b"X: " + b"y" * 65536 + b"\r\n\r\n",
    "a target of 64 KiB": b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
    "a NUL in a header": b"GET " + NODE + b" HTTP/1.1\r\n" + HEAD + b"X: a\0b\r\n\r\n",
    "binary": bytes(range(256)) * 8,
    "nothing but line ends": b"\r\n" * 1000,
    "more than a length says": PUT + b"Content-Length: 5\r\n\r\n" + FACTS,
    "a form that is none": b"POST /puppet/v3/catalog/agent1?environment=production HTTP/1.1\r\n" + HEAD + b"Content-Length: 3\r\n\r\n%zz",
    "a thousand parameters": b"GET " + NODE + b"&a=b" * 1500 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
}
BODIES: dict[str, tuple[str, bytes]] = {
    "deep JSON": ("application/json", b"[" * 100_000),
    "NaN": ("application/json", b'{"name":"agent1","values":{"a":NaN}}'),
    "a number too large": ("application/json", b'{"name":"agent1","values":{"a":1e999}}'),
    "the same key twice": ("application/json", b'{"name":"agent1","name":"agent2","values":{}}'),
    "UTF-16": ("application/json", FACTS.decode().encode("utf-16")),
    "a list": ("application/json", b"[1]"),
    "an empty body": ("application/json", b""),
    "a lone surrogate": ("application/json", b'{"name":"agent1","values":{"a":"\\ud800"}}'),
    "an object of Ruby": ("text/yaml", b"--- !ruby/object:ERB\nsrc: id\n"),
    "an object of Python": ("text/yaml", b'--- !!python/object/apply:os.system ["id"]\n'),
    "a bomb": ("text/yaml", b"a: &a [x,x,x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (98 + n, 98 + n, 97 + n, 97 + n) for n in range(20))),
    "PSON with odd bytes": ("text/pson", b'{"name":"agent1","values":{"a":"\xff\xfe"}}'),
    "base64 of nothing": ("text/b64_zlib_yaml", b"!!!!"),
    "marshal": ("text/marshal", b"\x04\x08o:\x08ERB\x00"),
    "a certificate that is none": ("text/plain", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", RAW)
def test_HTTP_05_06_07_08_no_odd_message_ends_in_an_incident(site: Started, what: str) -> None:
    for who in (None, "agent1"):
        answer = site.send(RAW[what], name=who)
        assert answer.status in (0, 200, 400, 403, 404, 405, 408, 411, 413, 414, 415, 417, 431, 505), answer  # 505: another HTTP
        if answer.status != 505:
            check(answer, what)
    site.check_alive()


@pytest.mark.slow
@pytest.mark.parametrize("what", BODIES)
def test_HTTP_12_13_14_16_17_no_odd_body_ends_in_an_incident(open_site: Started, what: str) -> None:
    kind, body = BODIES[what]
    for path, operations in PATHS.items():
        for method in ("put", "post"):
            if method in operations and "requestBody" in operations[method]:
                target = f"{filled(path, 'agent1')}?environment=production"
                # These rules let everybody see everything: only that nothing breaks counts here.
                answer = open_site.ask(method.upper(), target, body, headers={"Content-Type": kind})
                assert answer.status < 500 or answer.status == 503, (method, target, answer)
    open_site.check_alive()


# --- requests made up from the document

certnames = st.sampled_from(("agent1", "agent2", "none", "ca", "localhost"))
words = st.one_of(
    certnames,
    st.sampled_from(("*", "production", "true", "-1", "0", "99999999999", "md5", "modules/open/f", "sha256/x")),
    st.text(max_size=30),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=12,
)
FIELDS = (
    "name",
    "values",
    "host",
    "resource_statuses",
    "certnames",
    "desired_state",
    "cert_ttl",
    "status",
    "logs",
    "metrics",
    "time",
    "environment",
)
bodies = st.one_of(
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=6).map(lambda data: json.dumps(data).encode()),
)
OPERATIONS = [(path, method, operation) for path, operations in PATHS.items() for method, operation in operations.items()]


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """Method, target, body and headers of a request that an operation of the document describes, more or less."""
    path, method, operation = draw(st.sampled_from(OPERATIONS))
    parts = [
        quote(draw(st.sampled_from(("production", "production", "none", "x y")) if part == "{environment}" else words), safe="/*")
        if part.startswith("{")
        else part
        for part in path.split("/")
    ]
    given_ = [each["name"] for each in operation["parameters"] if each.get("in") == "query"]
    query = {"environment": draw(st.sampled_from(("production", "production", "none", "")))}
    query |= {name: draw(words) for name in draw(st.lists(st.sampled_from(given_), max_size=3, unique=True))} if given_ else {}
    target = "/".join(parts) + "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    headers = {"Accept": draw(st.sampled_from(("*/*", "application/json", "text/pson", "text/yaml", "s", "raw", "x/y", "")))}
    body = b""
    if "requestBody" in operation:
        kinds = sorted(operation["requestBody"]["content"])
        headers["Content-Type"] = draw(st.sampled_from([*kinds, *kinds, "application/json", "x/y", ""]))
        body = draw(bodies)
    return method.upper(), target, body, {name: value for name, value in headers.items() if value}


EXAMPLES = settings(max_examples=examples(400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["shipped", "open"])
def test_requests_made_up_from_the_document_never_end_in_an_incident(rules: str, site: Started, open_site: Started) -> None:
    target_site = site if rules == "shipped" else open_site

    @EXAMPLES
    @given(requests())
    def asked(request: tuple[str, str, bytes, dict[str, str]]) -> None:
        method, target, body, headers = request
        answer = target_site.ask(method, target, body, headers=headers)
        assert answer.status != 0, request
        if rules == "shipped":
            check(answer, request)
        else:
            assert answer.status < 500 or answer.status == 503, (request, answer)

    asked()
    target_site.check_alive()


@pytest.mark.slow
def test_only_the_methods_of_the_document_are_taken(open_site: Started) -> None:
    for path, route in documented_routes().items():
        target = filled(path, "agent1" if "{certname}" in path else "ca")
        for method in ("GET", "PUT", "POST", "DELETE"):
            if method not in route.methods:
                answer = open_site.ask(method, target)
                assert answer.status in (404, 405), (method, target, answer)
            elif method == "GET":
                assert open_site.ask(method, target).status != 405, (method, target)
