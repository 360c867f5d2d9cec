"""Bodies unpacked within their limits; answers packed as asked."""

from __future__ import annotations

import gzip
import zlib

import pytest

from httpd.messages.bodies import unpack
from httpd.messages.responses import compress, encode_body, negotiate_coding
from shared.errors import BadData, TooLarge
from shared.wire.deflated import DeflatedText
from shared.wire.inflate import Inflater
from tests.support.codings import ACCEPTED_BY_RUBY


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(("how", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare_deflate)])
@pytest.mark.parametrize("data", [b"", b"a", b"abc" * 100_000, bytes(range(256)) * 3000])
def test_what_was_packed_is_unpacked(how: str, pack: object, data: bytes) -> None:
    assert unpack(pack(data), how, 10**6) == data  # type: ignore[operator]


@pytest.mark.parametrize(("length", "fits"), [(1000, True), (1001, False)])
def test_the_limit_is_of_the_unpacked_size(length: int, fits: bool) -> None:
    body = gzip.compress(b"x" * length)
    if fits:
        assert len(unpack(body, "gzip", 1000)) == 1000
    else:
        with pytest.raises(TooLarge):
            unpack(body, "gzip", 1000)


@pytest.mark.parametrize(
    ("how", "body"),
    [
        ("gzip", b""),
        ("gzip", b"x"),
        ("gzip", gzip.compress(b"abc", mtime=0)[:-1]),
        ("gzip", gzip.compress(b"abc", mtime=0) + b"\0"),
        ("gzip", gzip.compress(b"abc", mtime=0) + gzip.compress(b"abc", mtime=0)),
        ("gzip", zlib.compress(b"abc")),
        ("deflate", gzip.compress(b"abc", mtime=0)),
        ("deflate", zlib.compress(b"abc")[:-1]),
    ],
)
def test_what_is_not_whole_is_bad_data(how: str, body: bytes) -> None:
    with pytest.raises(BadData):
        unpack(body, how, 10**6)


def test_a_stream_is_unpacked_in_pieces_of_bounded_size() -> None:
    inflater = Inflater("gzip")
    body = gzip.compress(b"\0" * 10_000_000)
    pieces = [piece for start in range(0, len(body), 7) for piece in inflater.feed(body[start : start + 7])]
    inflater.finish()
    assert sum(map(len, pieces)) == 10_000_000
    assert max(map(len, pieces)) <= 256 * 1024


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", ""),
        ("identity", ""),
        (ACCEPTED_BY_RUBY, "gzip"),
        ("gzip; q=1.0, deflate; q=1.0; identity", "gzip"),
        ("deflate", "deflate"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip;q=0, deflate", "deflate"),
        ("gzip; q=0.0", ""),
        ("br, zstd", ""),
    ],
)
def test_the_coding_is_what_the_client_asks_for(header: str, expected: str) -> None:
    assert negotiate_coding(header) == expected


def test_packing_the_same_twice_gives_the_same() -> None:
    assert compress(b"abc", "gzip") == compress(b"abc", "gzip")


SHORT, LONG = b"a short text", b"head," + b"a long text " * 20_000


@pytest.mark.parametrize(
    ("body", "header", "coding"),
    [
        (LONG, ACCEPTED_BY_RUBY, "gzip"),
        (LONG, "", ""),
        (DeflatedText.split(LONG, 5), ACCEPTED_BY_RUBY, "deflate"),
        (DeflatedText.split(LONG, 5), "gzip", "gzip"),
        (DeflatedText.split(LONG, 5), "gzip, deflate;q=0", "gzip"),
        (DeflatedText.split(LONG, 5), "", ""),
        (DeflatedText(SHORT), "gzip, deflate", "gzip"),
        (DeflatedText(SHORT), "identity", ""),
    ],
)
async def test_a_body_goes_out_in_a_coding_that_the_client_takes(body: bytes | DeflatedText, header: str, coding: str) -> None:
    encoded, name = await encode_body(body, header)
    assert name == coding
    assert (unpack(encoded, coding, 10**6) if coding else encoded) == bytes(body)
