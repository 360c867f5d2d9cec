from __future__ import annotations

import base64
import zlib

import pytest

from shared.errors import BadData, MissingHeader, NotAcceptable, PuppetError, UnsupportedMediaType
from shared.wire import formats
from shared.wire.formats import B64_ZLIB_YAML, BINARY, JSON, PSON, RAW, RICH_JSON, TEXT, YAML, Format, accepted_formats, of_content_type

LEGACY = (PSON, YAML, B64_ZLIB_YAML, TEXT, RAW)
MODERN = (RICH_JSON, JSON, PSON, YAML, TEXT, BINARY)
DATA = {"name": "web1", "list": [1, 2.5, None, True], "ünï": {"a": "b\nc"}}


@pytest.mark.parametrize("format", [JSON, RICH_JSON, PSON, YAML, B64_ZLIB_YAML], ids=lambda each: each.name)
def test_dump_and_load_undo_each_other(format: Format) -> None:
    assert format.load(format.dump(DATA)) == DATA


@pytest.mark.parametrize("format", [TEXT, RAW, BINARY], ids=lambda each: each.name)
def test_raw_formats_leave_bytes_alone(format: Format) -> None:
    assert format.raw
    assert format.load(format.dump(b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize(("format", "header"), [(JSON, "application/json;charset=utf-8"), (PSON, "text/pson"), (TEXT, "text/plain")])
def test_the_content_type_of_answers_names_the_charset_where_clients_expect_it(format: Format, header: str) -> None:
    assert format.content_type == header


@pytest.mark.parametrize(
    ("header", "known", "found"),
    [
        # 3.x: bare names
        ("pson, b64_zlib_yaml, yaml, raw", LEGACY, [PSON, B64_ZLIB_YAML, YAML, RAW]),
        ("s", LEGACY, [TEXT]),
        ("yaml, pson", LEGACY, [YAML, PSON]),
        # MIME types, in the client's order
        ("application/vnd.puppet.rich+json, application/json, text/pson", MODERN, [RICH_JSON, JSON, PSON]),
        ("application/json, application/vnd.puppet.rich+json", MODERN, [JSON, RICH_JSON]),
        ("application/octet-stream", MODERN, [BINARY]),
        ("dot, text/pson, nonsense", MODERN, [PSON]),
        # wildcards, in the server's order
        ("*/*", MODERN, list(MODERN)),
        ("text/*", MODERN, [PSON, YAML, TEXT]),
        ("text/pson, */*", MODERN, [PSON, RICH_JSON, JSON, YAML, TEXT, BINARY]),
        # quality is cut off and ignored
        ("text/yaml;q=0.1, application/json;q=0.9", MODERN, [YAML, JSON]),
        ("application/json; charset=utf-8", MODERN, [JSON]),
        ("pson,pson , pson", LEGACY, [PSON]),
    ],
)
def test_accept_chooses_in_the_clients_order(header: str, known: tuple[Format, ...], found: list[Format]) -> None:
    assert [each.name for each in accepted_formats(header, known)] == [each.name for each in found]


@pytest.mark.parametrize("header", ["", "application/xml", "b64_zlib_yaml", "raw", "q=1", "JSON", "text", ",,,"])
def test_accept_of_nothing_known_is_refused_and_shortened(header: str) -> None:
    with pytest.raises(NotAcceptable, match="No supported formats are acceptable"):
        accepted_formats(header, MODERN)
    with pytest.raises(NotAcceptable) as caught:
        accepted_formats("x" * 10_000, MODERN)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("text/pson", PSON),
        ("pson", PSON),
        ("application/json", JSON),
        ("Application/JSON", JSON),
        ("application/json; charset=utf-8", JSON),
        ('application/json;charset="UTF-8"', JSON),
        ("application/json;charset=us-ascii;boundary=x", JSON),
        (" text/yaml ", YAML),
        ("application/vnd.puppet.rich+json", RICH_JSON),
    ],
)
def test_a_body_is_read_as_its_content_type_says(header: str, found: Format) -> None:
    assert of_content_type(header, MODERN) is found


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (None, MissingHeader),
        ("", MissingHeader),
        ("application/xml", UnsupportedMediaType),
        ("text/b64_zlib_yaml", UnsupportedMediaType),
        ("application/json;charset=utf-16", UnsupportedMediaType),
        ("*/*", UnsupportedMediaType),
        ("text/\x1b[31m", UnsupportedMediaType),
    ],
)
def test_a_body_of_another_type_is_refused(header: str | None, error: type[PuppetError]) -> None:
    with pytest.raises(error) as caught:
        of_content_type(header, MODERN)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not base64!", "Not base64 of zlib"),
        (base64.b64encode(b"not zlib"), "Not base64 of zlib"),
        (base64.b64encode(zlib.compress(b"a: 1\nb: 2\n" * 100)[:-20]), "cut off"),
        (base64.b64encode(zlib.compress(b"a: [\n")), "Not YAML|YAML|while parsing"),
    ],
)
def test_a_broken_b64_zlib_yaml_is_one_clear_error(body: bytes, message: str) -> None:
    with pytest.raises(BadData, match=message):
        B64_ZLIB_YAML.load(body)


def test_what_a_small_body_expands_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_INFLATED", 10_000)
    bomb = base64.b64encode(zlib.compress(b"a" * 100_000))
    assert len(bomb) < 1000
    with pytest.raises(BadData, match="larger than 10000 bytes"):
        B64_ZLIB_YAML.load(bomb)
    assert B64_ZLIB_YAML.load(B64_ZLIB_YAML.dump({"a": "b" * 9000})) == {"a": "b" * 9000}


def test_anchors_of_old_peers_are_read_and_their_expansion_is_bounded() -> None:
    assert YAML.load(b"a: &1 [x]\nb: *1\n") == {"a": ["x"], "b": ["x"]}
    laughs = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    laughs += b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9))
    with pytest.raises(BadData):
        YAML.load(laughs)


@pytest.mark.parametrize("format", [JSON, PSON, YAML], ids=lambda each: each.name)
@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"a": '], ids=["open", "bytes", "cut"])
def test_what_does_not_parse_is_bad_data(format: Format, body: bytes) -> None:
    with pytest.raises(BadData):
        format.load(body)
