"""Values: hash keys, strict and loose equality, wrappers. Origin of what is expected: Puppet 7.23."""

from __future__ import annotations

import pickle

import pytest

from language.values.core import DEFAULT, Binary, Deferred, HashKey, Sensitive, entries, is_same, key_of, value_of
from shared.errors import EvaluationError
from shared.regexps import Regexp


def test_keys_that_python_takes_for_one_stay_three() -> None:
    hash_ = {key_of(1): "a", key_of(1.0): "b", key_of(True): "c", key_of("1"): "d"}
    assert [value for _, value in entries(hash_)] == ["a", "b", "c", "d"]
    assert [type(key) for key, _ in entries(hash_)] == [int, float, bool, str]


def test_strings_and_integers_are_their_own_keys() -> None:
    assert key_of("a") == "a"
    assert key_of(1).__class__ is int
    assert key_of(None) is None


def test_arrays_and_hashes_can_be_keys() -> None:
    hash_ = {key_of([1, {"a": [2]}]): "found"}
    assert hash_[key_of([1, {"a": [2]}])] == "found"
    assert key_of([1, {"a": [2.0]}]) not in hash_
    assert value_of(next(iter(hash_))) == [1, {"a": [2]}]
    assert isinstance(key_of({}), HashKey)


@pytest.mark.parametrize(
    ("left", "right", "strict", "loose"),
    [
        (1, 1.0, False, True),
        (1, True, False, False),
        (True, True, True, True),
        ("a", "A", False, False),
        ([1, [2]], [1, [2.0]], False, True),
        ({"a": 1}, {"a": 1.0}, False, True),
        (None, False, False, False),
        (DEFAULT, DEFAULT, True, True),
        (Sensitive("x"), Sensitive("x"), True, True),
        (Regexp("a"), Regexp("a"), True, True),
    ],
)
def test_equality_is_rubys(left: object, right: object, strict: bool, loose: bool) -> None:
    assert (key_of(left) == key_of(right)) is strict
    assert is_same(left, right) is loose


def test_a_sensitive_never_shows_its_value() -> None:
    assert "secret" not in repr(Sensitive("secret"))
    assert "secret" not in str(Sensitive("secret"))


def test_default_stays_the_same_object_across_processes() -> None:
    assert pickle.loads(pickle.dumps(DEFAULT)) is DEFAULT
    assert pickle.loads(pickle.dumps(Regexp("a"))) == Regexp("a")


def test_binary_reads_strict_lenient_and_url_safe_base64() -> None:
    assert Binary.from_base64("YWJj").data == b"abc"
    assert Binary.from_base64("YW\nJj", strict=False).data == b"abc"
    assert Binary.from_base64("_-8", urlsafe=True).data == b"\xff\xef"
    assert str(Binary(b"abc")) == "YWJj"
    with pytest.raises(EvaluationError, match="invalid base64"):
        Binary.from_base64("!!")


def test_deferreds_can_be_hash_keys() -> None:
    assert {Deferred("a", [1]): 1}[Deferred("a", [1])] == 1
