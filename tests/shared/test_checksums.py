"""Checksums: values, texts, and what is refused."""

import hashlib
import os

import pytest

from shared.errors import BadData, BadRequest
from shared.filesystem import checksums
from shared.filesystem.checksums import Checksum

LONG = bytes(range(256)) * 8


@pytest.mark.parametrize("name", checksums.HEX_LENGTH)
def test_bytes_and_file_agree(name, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(LONG)
    expected = hashlib.new(name.removesuffix("lite"), LONG[:512] if name.endswith("lite") else LONG).hexdigest()
    assert checksums.of_bytes(name, LONG) == expected
    with path.open("rb") as file:
        file.seek(99)
        assert checksums.of_file(name, file.fileno()) == expected
        assert file.tell() == 99
    assert checksums.valid(name, expected)


def test_a_file_is_read_up_to_the_limit_only(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(LONG)
    with path.open("rb") as file:
        assert checksums.of_file("sha256", file.fileno(), limit=10) == hashlib.sha256(LONG[:10]).hexdigest()
        assert checksums.of_file("md5lite", file.fileno(), limit=10) == hashlib.md5(LONG[:10]).hexdigest()


def test_times_are_told_in_utc(tmp_path):
    path = tmp_path / "f"
    path.touch()
    os.utime(path, (0, 1795211311.9))
    with path.open("rb") as file:
        assert checksums.of_file("mtime", file.fileno()) == "2026-11-20 21:48:31 +0000"
        assert checksums.of_file("none", file.fileno()) == ""


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-11-20 21:48:31 +0000", "2026-11-20T21:48:31+00:00"),
        ("2026-11-20 23:48:31 +0200", "2026-11-20T21:48:31+00:00"),
        ("2026-11-20 21:48:31 UTC", "2026-11-20T21:48:31+00:00"),
        ("2026-11-20T21:48:31.123456789+00:00", "2026-11-20T21:48:31.123456+00:00"),
    ],
)
def test_times_of_any_zone_are_read(text, iso):
    assert checksums.time_of(text).isoformat() == iso


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-20 21:48:31 +0000", "2026-11-20 21:48:31 +0000\n"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(BadData):
        checksums.time_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "{md5}" + "a" * 32,
        "{sha256lite}" + "0" * 64,
        "{mtime}2026-11-20 21:48:31 +0000",
        "{none}",
    ],
)
def test_text_survives_the_way_there_and_back(text):
    assert str(Checksum.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "a" * 32,
        "{md5}" + "A" * 32,
        "{md5}" + "a" * 31,
        "{md5}" + "a" * 33,
        "{md5}" + "a" * 32 + "\n",
        "{md5}" + "g" * 32,
        "{md5}" + "\u0663" * 32,
        "{md4}" + "a" * 32,
        "{../x}" + "a" * 32,
        " {md5}" + "a" * 32,
        "",
    ],
)
def test_a_malformed_checksum_is_refused(text):
    with pytest.raises(BadData):
        Checksum.parse(text)


@pytest.mark.parametrize("name", ["md4", "../x", "", "md5\n", "SHA256", "none?"])
def test_an_unknown_type_is_refused_and_the_known_ones_named(name):
    with pytest.raises(BadRequest) as caught:
        checksums.algorithm(name)
    assert "sha256" in caught.value.hint


def test_a_newer_file_satisfies_a_time():
    old, new = Checksum("mtime", "2026-11-20 21:48:31 +0000"), Checksum("mtime", "2026-11-20 23:48:32 +0100")
    assert checksums.matches(old, new)
    assert not checksums.matches(new, old)


def test_none_is_never_satisfied_and_types_do_not_mix():
    assert not checksums.matches(Checksum("none", ""), Checksum("none", ""))
    assert not checksums.matches(Checksum.of("md5", b"x"), Checksum.of("sha1", b"x"))
    assert checksums.matches(Checksum.of("md5", b"x"), Checksum.of("md5", b"x"))
