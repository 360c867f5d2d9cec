"""The few DER shapes this package reads and writes itself: one element, and the strings inside extension values."""

from __future__ import annotations

from contextlib import suppress

INTEGER, BOOLEAN, UTF8_STRING, IA5_STRING, PRINTABLE_STRING = 0x02, 0x01, 0x0C, 0x16, 0x13
SEQUENCE, OBJECT_IDENTIFIER = 0x30, 0x06

_STRINGS = {
    UTF8_STRING: "utf-8",
    0x12: "ascii",  # NumericString
    PRINTABLE_STRING: "ascii",
    0x14: "latin-1",  # T61String, as everyone uses it
    IA5_STRING: "ascii",
    0x1A: "ascii",  # VisibleString
    0x1E: "utf-16-be",  # BMPString
}


def element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return (tag, content, rest) of the first element; raise ValueError unless it is definite-length DER with a one-byte tag."""
    if len(data) < 2 or data[0] & 0x1F == 0x1F:
        raise ValueError("not a DER element")
    length, start = data[1], 2
    if length >= 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4 or len(data) < 2 + count:
            raise ValueError("not a DER length")
        length, start = int.from_bytes(data[2 : 2 + count], "big"), 2 + count
    if start + length > len(data):
        raise ValueError("a DER element is cut off")
    return data[0], data[start : start + length], data[start + length :]


def elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return all (tag, content) pairs of a constructed element's content."""
    members = []
    while data:
        tag, content, data = element(data)
        members.append((tag, content))
    return members


def encode(tag: int, content: bytes) -> bytes:
    """Return one element with a definite length."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def extension_text(value: bytes) -> str:
    """
    Return the value of an extension as text.

    Puppet 4 and later put a DER string inside the OCTET STRING, 3.8 the bare bytes. A complete, well-formed
    string, integer or boolean is decoded; everything else is read as UTF-8.
    Source: protocol reference 5.4.
    """
    with suppress(ValueError):
        tag, content, rest = element(value)
        if not rest:
            if tag in _STRINGS:
                return content.decode(_STRINGS[tag])
            if tag == BOOLEAN and len(content) == 1:
                return "true" if content[0] else "false"
            if tag == INTEGER and content:
                return str(int.from_bytes(content, "big", signed=True))
    return value.decode("utf-8", "replace")
