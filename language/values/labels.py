"""The names by which error messages call the kinds of values."""

from __future__ import annotations

from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from .core import DEFAULT, Binary, Deferred, ForeignObject, Instance, Iterator, PuppetType, Sensitive, Value
from .times import Timespan, Timestamp
from .uris import URI
from .versions import SemVer, SemVerRange

_LABELS: Final = {
    str: "String",
    int: "Integer",
    float: "Float",
    bool: "Boolean",
    list: "Array",
    dict: "Hash",
    type(None): "Undef Value",
    Regexp: "Regexp",
    Binary: "Binary",
    Sensitive: "Sensitive",
    Timestamp: "Timestamp",
    Timespan: "Timespan",
    SemVer: "Semver",
    SemVerRange: "SemverRange",
    Deferred: "Deferred",
    Iterator: "Iterator",
    URI: "URI",
}


def label(value: Value) -> str:
    """Return the kind of a value for a message: `Integer`, `Undef Value`, `Notify['a']-Type`."""
    if isinstance(value, PuppetType):
        return value.label
    if value is DEFAULT:
        return "Symbol"
    if isinstance(value, Instance):
        return value.type.name
    return _LABELS.get(value.__class__, "Object")


def declared_type(subject: str, type_: object) -> PuppetType:
    """Return the type that a declaration gives `subject`; raise EvaluationError for several, as `File['/a', '/b']` is."""
    if not isinstance(type_, PuppetType):
        raise EvaluationError(f"{subject} is given a type that is not a Puppet Type, got Array")
    return type_


def with_article(noun: str) -> str:
    """Return `noun` with `a` or `an` in front; a leading quote or bracket does not count."""
    first = noun.lstrip("'\"[({ ")[:1].lower()
    return f"an {noun}" if first in tuple("aeiouy") else f"a {noun}"


def uppercase_article(noun: str) -> str:
    """Return `noun` with `A` or `An` in front."""
    text = with_article(noun)
    return text[0].upper() + text[1:]


def ruby_class(value: Value) -> str:
    """Return the name of the value's class in Ruby, for messages in which the reference shows it."""
    if isinstance(value, PuppetType):
        return f"Puppet::Pops::Types::P{value.pcore_name}"
    if value is DEFAULT:
        return "Symbol"
    if value is None:
        return "NilClass"
    if value.__class__ is bool:
        return "TrueClass" if value else "FalseClass"
    if isinstance(value, ForeignObject | URI):
        return value.ruby_class
    return _RUBY_CLASSES.get(value.__class__) or label(value)


def implicit_kind(value: Value) -> str:
    """Return how Ruby calls a value that it cannot convert: `no implicit conversion of nil into String`."""
    return {type(None): "nil", bool: "true" if value is True else "false"}.get(value.__class__) or label(value)


_RUBY_CLASSES: Final = {
    Binary: "Puppet::Pops::Types::PBinaryType::Binary",
    SemVer: "SemanticPuppet::Version",
    SemVerRange: "SemanticPuppet::VersionRange",
    Sensitive: "Puppet::Pops::Types::PSensitiveType::Sensitive",
    Timespan: "Puppet::Pops::Time::Timespan",
    Timestamp: "Puppet::Pops::Time::Timestamp",
}
