"""The wire forms of plain data, and how two sides agree on one."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import plainjson, plainyaml
from ..errors import BadData, MissingHeader, NotAcceptable, UnsupportedMediaType
from ..names import quoted_for_log

MAX_INFLATED = 64 * 1024 * 1024  # bytes that a b64_zlib_yaml text may expand to


@dataclass(frozen=True, slots=True)
class Format:
    """
    One wire form. `dump` and `load` undo each other: plain data (for `raw` formats: bytes) to bytes and back.

    `weight` orders the formats of a model: the heaviest is its default.
    """

    name: str
    mime: str
    weight: int
    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]
    raw: bool = False
    charset: str = ""  # appended to the Content-Type of answers

    @property
    def content_type(self) -> str:
        return f"{self.mime};charset={self.charset}" if self.charset else self.mime


def _same(body: bytes) -> bytes:
    return body


def _b64_zlib_dump(data: Any) -> bytes:
    return base64.b64encode(zlib.compress(plainyaml.dumps(data)))


def _b64_zlib_load(body: bytes) -> Any:
    try:
        packed = base64.b64decode(body)
        inflater = zlib.decompressobj()
        text = inflater.decompress(packed, MAX_INFLATED)
    except (binascii.Error, zlib.error) as err:
        raise BadData(f"Not base64 of zlib: {err}") from err
    if inflater.unconsumed_tail or len(text) >= MAX_INFLATED:
        raise BadData(f"The compressed text is larger than {MAX_INFLATED} bytes")
    if not inflater.eof:
        raise BadData("Not base64 of zlib: the text is cut off")
    return plainyaml.loads(text, aliases=True, scalars=plainyaml.CORE)


def _wire_yaml(body: bytes) -> Any:
    # 3.x peers write anchors for objects that they mention twice; what they expand to is bounded.
    return plainyaml.loads(body, aliases=True, scalars=plainyaml.CORE)


JSON = Format("json", "application/json", 15, plainjson.dumps, plainjson.loads, charset="utf-8")
RICH_JSON = Format("rich_data_json", "application/vnd.puppet.rich+json", 30, plainjson.dumps, plainjson.loads, charset="utf-8")
PSON = Format("pson", "text/pson", 10, plainjson.dumps_pson, plainjson.loads_pson)
YAML = Format("yaml", "text/yaml", 5, plainyaml.dumps, _wire_yaml)
B64_ZLIB_YAML = Format("b64_zlib_yaml", "text/b64_zlib_yaml", 5, _b64_zlib_dump, _b64_zlib_load)
TEXT = Format("s", "text/plain", 5, _same, _same, raw=True)
RAW = Format("raw", "application/x-raw", 1, _same, _same, raw=True)
# Heavier than text, since servers of 5 and later take files for their bucket in no other form.
BINARY = Format("binary", "application/octet-stream", 6, _same, _same, raw=True)


def of_content_type(header: str | None, formats: Sequence[Format]) -> Format:
    """
    Return the format of a body, by its Content-Type; parameters are cut off, only `charset=utf-8` is accepted.

    Raises:
        MissingHeader: there is none.
        UnsupportedMediaType: it names nothing in `formats`.
    """
    if not header:
        raise MissingHeader("Missing required Content-Type header")
    mime, *parameters = (part.strip() for part in header.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii", "iso-8859-1"):
            raise UnsupportedMediaType(f"The charset {quoted_for_log(value)} is not supported")
    for format in formats:
        if mime.lower() == format.mime or mime == format.name:
            return format
    raise UnsupportedMediaType(f"Client sent a mime-type ({quoted_for_log(mime)[1:-1]}) that doesn't correspond to a format we support")


def accepted_formats(header: str, formats: Iterable[Format]) -> list[Format]:
    """
    Return those of `formats` (the preferred first) that an Accept header names, in the header's order.

    Items are MIME types, bare format names (3.x and 4.x clients) or wildcards; `q` is cut off and ignored.

    Raises:
        NotAcceptable: none of them.
    Source: protocol reference 2.4.
    """
    known = list(formats)
    found: list[Format] = []
    for item in header.split(","):
        media_type = item.split(";")[0].strip()
        if media_type == "*/*":
            found += known
        elif media_type.endswith("/*"):
            found += [f for f in known if f.mime.startswith(media_type[:-1])]
        else:
            found += [f for f in known if media_type in (f.mime, f.name)]
    if not found:
        raise NotAcceptable(f"No supported formats are acceptable (Accept: {header[:200]})")
    return list(dict.fromkeys(found))
