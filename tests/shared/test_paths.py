from __future__ import annotations

from typing import Any

import pytest

from shared.errors import BadName, BadRequest
from shared.indirector import Indirection, Model, paths, request_for
from shared.indirector.paths import build, parse
from shared.models.catalog import CATALOG
from shared.models.certificate_status import CERTIFICATE_STATUS
from shared.models.facts import FACTS
from shared.models.file_metadata import FILE_METADATA
from shared.wire.dialects import LEGACY, MODERN

CALLS = [
    ("GET", "/production/certificate/ca", "certificate find ca production"),
    ("GET", "/production/certificate_statuses/x", "certificate_status search x production"),
    ("GET", "/production/certificate_statuss/x", "certificate_status search x production"),
    ("GET", "/production/certificate_status/x", "certificate_status find x production"),
    ("GET", "/production/facts/n", "facts find n production"),
    ("GET", "/production/facts_search/x", "facts search x production"),
    ("GET", "/production/status/x", "status find x production"),
    ("GET", "/production/bogus/x", "bogu search x production"),
    ("GET", "/production/file_metadatas/plugins", "file_metadata search plugins production"),
    ("POST", "/e/catalog/n", "catalog find n e"),
    ("PUT", "/e/report/n", "report save n e"),
    ("HEAD", "/e/file_bucket_file/md5/0/etc/x", "file_bucket_file head md5/0/etc/x e"),
    ("HEAD", "/e/file_bucket_file/md5/0//etc/x", "file_bucket_file head md5/0/etc/x e"),
    ("DELETE", "/e/certificate_status/n", "certificate_status destroy n e"),
    ("GET", "/e/file_content/modules/a/b%20c", "file_content find modules/a/b c e"),
    ("GET", "/e/catalog/", "catalog find  e"),
    ("GET", "/e/catalog", "catalog find  e"),
    ("GET", "/puppet/v3/catalog/n?environment=e", "catalog find n e"),
    ("GET", "/puppet/v3/catalog/n", "catalog find n None"),
    ("GET", "/puppet/v3/file_metadatas/plugins?environment=e", "file_metadata search plugins e"),
    ("PUT", "/puppet-ca/v1/certificate_request/n?environment=e", "certificate_request save n e"),
]


@pytest.mark.parametrize(("method", "url", "call"), CALLS)
def test_a_url_is_a_call_on_an_indirection(method: str, url: str, call: str) -> None:
    path, _, query = url.partition("?")
    found = parse(method, path, query)
    assert f"{found.indirection} {found.verb} {found.key} {found.environment}" == call
    assert found.dialect is (MODERN if path.startswith("/puppet") else LEGACY)


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("PUT", "/e/nodes/x", "No support for plurality singular for PUT operations"),
        ("PATCH", "/e/node/x", "No support for http method PATCH"),
        ("GET", "/a-b/node/x", "purely alphanumeric, not 'a-b'"),
        ("GET", "/../node/x", "purely alphanumeric"),
        ("GET", "/e/no-de/x", "indirection name must be purely alphanumeric"),
        ("GET", "/e", "indirection name"),
        ("GET", "/", "purely alphanumeric"),
    ],
)
def test_a_url_that_makes_no_call_says_why(method: str, path: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parse(method, path)


@pytest.mark.parametrize("key", ["%c0%ae%c0%ae", "%e0%80%ae", "%ff", "%u002e", "%", "%zz", "a%2", "\x80", "ÿ"])
def test_what_does_not_decode_once_is_refused(key: str) -> None:
    with pytest.raises(BadName):
        parse("GET", f"/e/node/{key}")


def test_a_percent_sign_is_decoded_once_only() -> None:
    assert parse("GET", "/e/node/%252e%252e").key == "%2e%2e"


def test_parameters_repeat_into_lists_and_a_bare_question_mark_is_none() -> None:
    assert paths.parameters("ignore=.svn&ignore=CVS&links=manage&x=a+b&y=a%20b&empty=") == {
        "ignore": [".svn", "CVS"],
        "links": "manage",
        "x": "a b",
        "y": "a b",
        "empty": "",
    }
    assert paths.parameters("") == {}


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(BadRequest):
        paths.parameters("&".join(f"a{i}=1" for i in range(2000)))


def test_the_environment_of_the_path_wins_in_scheme_a() -> None:
    call = parse("GET", "/production/node/n", "environment=secret")
    assert call.environment == "production"
    assert "environment" not in call.options


def test_a_form_adds_what_the_query_does_not_say_and_what_both_say_stands_twice() -> None:
    call = parse("POST", "/puppet/v3/catalog/n", "environment=e&a=1&c=1&c=2").with_form(b"a=2&b=3&c=3&environment=e")
    assert (call.environment, call.options) == ("e", {"a": ["1", "2"], "b": "3", "c": ["1", "2", "3"]})


@pytest.mark.parametrize(("indirection", "once", "often"), [(FILE_METADATA, "recurse", "ignore"), (CERTIFICATE_STATUS, "state", "for")])
def test_parameters_stand_several_times_only_where_agents_send_them_so(indirection: Indirection[Any], once: str, often: str) -> None:
    options = {often: ["a", "b"], once: "a", "unknown": ["a", "b"]}
    assert indirection.allowed(options) == {often: ["a", "b"], once: "a"}
    with pytest.raises(BadRequest, match=f"The parameter {once} appears more than once"):
        indirection.allowed(options | {once: ["a", "a"]})


@pytest.mark.parametrize("dialect", [LEGACY, MODERN])
@pytest.mark.parametrize("verb", ["find", "search", "save", "destroy", "head"])
def test_a_built_request_parses_back_into_the_call(dialect: object, verb: str) -> None:
    request = request_for("modules/a b/ü%", environment="e", links="manage", ignore=["a", "b"])
    outgoing = build(verb, FACTS, request, dialect)  # type: ignore[arg-type]
    path, _, query = outgoing.target.partition("?")
    call = parse(outgoing.method, path, query)
    assert (call.indirection, call.verb, call.key, call.environment) == ("facts", verb, "modules/a b/ü%", "e")
    assert call.options == {"links": "manage", "ignore": ["a", "b"]}


def test_a_long_find_becomes_a_post_with_a_form() -> None:
    request = request_for("n", environment="e", facts="x" * 2000)
    outgoing = build("find", CATALOG, request, MODERN)  # type: ignore[arg-type]
    assert (outgoing.method, outgoing.target) == ("POST", "/puppet/v3/catalog/n?environment=e")
    assert outgoing.form is not None and outgoing.form.startswith(b"environment=e&facts=xxx")


class Thing(Model):
    pass


def test_the_plural_of_an_indirection_is_what_old_clients_send() -> None:
    assert Indirection(name="certificate_status", model=Thing, plural="certificate_statuses").search_name == "certificate_statuses"
    assert Indirection(name="node", model=Thing).search_name == "nodes"
