"""What holds for whatever a peer sends: names, paths and bodies are taken as they are meant, or are one clear error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.errors import BadData, BadRequest, PuppetError
from shared.indirector.core import Request
from shared.indirector.paths import MAX_GET, build, parse
from shared.models.catalog import CATALOG
from shared.models.facts import FACTS
from shared.models.file_metadata import FILE_METADATA
from shared.models.node import NODE
from shared.models.report import REPORT
from shared.names import quoted_for_log, valid_certname, valid_environment, valid_file_key
from shared.wire.dialects import LEGACY, MODERN, Dialect
from shared.wire.formats import Format, accepted_formats, of_content_type
from tests.support.examples import examples

LAWS = settings(max_examples=examples(60), deadline=None, derandomize=True)

labels = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,8}[a-z0-9_])?", fullmatch=True)
good_names = st.lists(labels, min_size=1, max_size=4).map(".".join).filter(lambda name: len(name) <= 64)
odd_names = st.one_of(
    st.text(max_size=80),
    st.text("ab.-_/%\\\0\n A\u0430\u2024\uff41", max_size=20),
    st.tuples(good_names, st.sampled_from(("\n", ".", "..", "/", "\0", " ", "-", "%2e", "\u202e", "A"))).map("".join),
)
RULE = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_-]*[a-z0-9_])*\.?", re.ASCII)


@LAWS
@given(good_names)
@pytest.mark.slow
def test_a_name_that_keeps_the_rule_is_itself(name: str) -> None:
    assert valid_certname(name) == name


@LAWS
@given(odd_names)
@example("a" * 64)
@example("a" * 65)
def test_a_name_is_taken_unchanged_or_refused(name: str) -> None:
    try:
        taken = valid_certname(name)
    except BadRequest as err:
        assert str(err).isprintable() and len(str(err)) < 500
        return
    assert taken == name
    assert RULE.fullmatch(name) and len(name) <= 64 and name.isascii() and ".." not in name and "/" not in name


@LAWS
@given(odd_names)
@pytest.mark.parametrize("check", [valid_environment, valid_file_key])
def test_other_names_become_no_path_and_no_second_line(check: Callable[[str], str], name: str) -> None:
    try:
        taken = check(name)
    except BadRequest:
        return
    assert taken == name
    assert name not in ("", ".", "..") and not set(name) & {"/", "\0", "\n"}


@LAWS
@given(st.text(max_size=300), st.integers(1, 100))
def test_what_is_shown_is_one_printable_line_of_bounded_length(text: str, limit: int) -> None:
    told = quoted_for_log(text, limit)
    assert told.isascii() and told.isprintable() and len(told) <= 12 * (limit + 1) + 2


# --- paths

keys = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(lambda key: not key.startswith("/"))
options = st.dictionaries(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda n: n != "environment"), st.text(max_size=20), max_size=4
)


@LAWS
@given(st.sampled_from((CATALOG, FACTS, NODE, FILE_METADATA)), st.sampled_from((LEGACY, MODERN)), keys, options)
def test_what_is_built_is_parsed_to_the_same_call(indirection: Any, dialect: Dialect, key: str, given_: dict[str, str]) -> None:
    asked: Request[Any] = Request(key=key, environment="production", options=given_)
    outgoing = build("find", indirection, asked, dialect)
    path, _, query = outgoing.target.partition("?")
    call = parse(outgoing.method, path, query)
    if outgoing.form is not None:
        call = call.with_form(outgoing.form)
        assert outgoing.method == "POST"
    else:
        assert len(outgoing.target) < MAX_GET
    assert (call.indirection, call.verb, call.key, call.environment, call.dialect) == (indirection.name, "find", key, "production", dialect)
    assert call.options == given_


@LAWS
@given(st.sampled_from(("GET", "PUT", "POST", "DELETE", "HEAD", "get", "")), st.text(max_size=60), st.text("abc=&%+[]2f;.", max_size=30))
def test_any_request_line_is_a_call_or_one_clear_error(method: str, path: str, query: str) -> None:
    for start in ("", "/", "/puppet/v3/", "/production/", "/puppet-ca/v1/"):
        try:
            call = parse(method, start + path, query)
        except PuppetError as err:
            assert err.status < 500 and str(err).isprintable(), err
        else:
            assert re.fullmatch(r"\w+", call.indirection, re.ASCII)
            assert call.environment is None or re.fullmatch(r"\w+", call.environment, re.ASCII)


@LAWS
@given(keys)
def test_a_key_is_decoded_once(key: str) -> None:
    twice = quote(quote(key, safe=""), safe="")
    call = parse("GET", f"/puppet/v3/file_metadata/{twice}", "environment=production")
    assert call.key == quote(key, safe="")


# --- bodies

FORMATS = {f"{dialect.name} {name}": form for dialect in (LEGACY, MODERN) for name, form in dialect.formats.items() if not form.raw}
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), texts)
data = st.recursive(scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)), max_leaves=15)


@LAWS
@given(data)
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())
def test_what_is_written_is_read_back(form: Format, data: Any) -> None:
    assert form.load(form.dump(data)) == data


MODELS = {"catalog": CATALOG, "facts": FACTS, "node": NODE, "report": REPORT, "file_metadata": FILE_METADATA}
bodies = st.one_of(
    st.binary(max_size=100),
    st.text("{}[]\",:'&*!-#| \n\taé01", max_size=60).map(str.encode),
    st.text("- :!<>&*%@`?|\n", max_size=30).map(str.encode),
)


@LAWS
@given(bodies)
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())
def test_any_body_is_data_or_bad_data(form: Format, body: bytes) -> None:
    try:
        form.load(body)
    except BadData as err:
        assert str(err).isprintable() or "\n" not in str(err)


fields = st.sampled_from(
    ("name", "values", "host", "resources", "edges", "classes", "status", "logs", "metrics", "time", "type", "mode", "checksum")
)
objects = st.one_of(data, st.dictionaries(fields, data, max_size=8))


@LAWS
@given(objects)
@pytest.mark.parametrize("what", MODELS)
def test_any_data_is_an_instance_or_bad_data(what: str, data: Any) -> None:
    try:
        made = MODELS[what].model.from_data(data)
    except PuppetError as err:
        assert err.status == 400, err
        return
    for dialect in (LEGACY, MODERN):
        form = dialect.formats_of(MODELS[what])[0]
        dialect.load(MODELS[what], dialect.dump(MODELS[what], made, form), form)


@LAWS
@given(st.text(max_size=60), st.sampled_from((LEGACY, MODERN)))
@example("*/*;q=nan", MODERN)
@example(",;q=,/;=", LEGACY)
def test_any_header_chooses_formats_that_are_there_or_is_refused(header: str, dialect: Dialect) -> None:
    known = dialect.formats_of(FACTS)
    try:
        chosen = accepted_formats(header, known)
        assert chosen and all(each in known for each in chosen)
    except PuppetError as err:
        assert err.status in (400, 406)
    try:
        assert of_content_type(header, known) in known
    except PuppetError as err:
        assert err.status in (400, 415)
