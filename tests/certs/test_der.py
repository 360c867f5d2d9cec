import pytest

from certs import der


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x0c\x03abc", "abc"),  # UTF8String, Puppet 4 and later
        (b"\x13\x03abc", "abc"),
        (b"\x16\x03abc", "abc"),
        (b"\x1e\x04\x00a\x00b", "ab"),
        (b"abc", "abc"),  # the bare bytes of 3.8
        (b"true", "true"),
        (b"\x0c\x03ab", "\x0c\x03ab"),  # cut off: taken as bytes
        (b"\x0c\x03abcd", "\x0c\x03abcd"),  # something follows: taken as bytes
        (b"\x02\x01\x05", "5"),
        (b"\x01\x01\xff", "true"),
        (b"", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_extension_text_reads_der_strings_and_bare_bytes(value: bytes, text: str) -> None:
    assert der.extension_text(value) == text


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 70000])
def test_encode_and_element_undo_each_other(size: int) -> None:
    content = b"x" * size
    assert der.element(der.encode(der.UTF8_STRING, content) + b"rest") == (der.UTF8_STRING, content, b"rest")
