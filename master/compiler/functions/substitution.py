"""split, regsubst, match, sprintf: strings taken apart and put together by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Match, Regexp

from ..callables.sprintf import format_text
from ..types.aliases import AliasType
from ..types.base import VariantType
from ..types.scalars import PatternType, RegexpType
from ..values.core import Value
from ..values.labels import ruby_class
from .api import Context, function, legacy_function


@function("split", "String str", "String pattern")
def split(context: Context, str_: str, pattern: str) -> list[str]:
    """The parts between matches of a pattern; what its groups match is put between; no empty ones at the end."""
    return _split(str_, Regexp(pattern))


@split.also("String str", "Regexp pattern")
def split_regexp(context: Context, str_: str, pattern: Regexp) -> list[str]:
    return _split(str_, pattern)


@split.also("String str", "Type[Regexp] pattern")
def split_type(context: Context, str_: str, pattern: RegexpType) -> list[str]:
    return _split(str_, pattern.regexp or Regexp(""))


def _split(text: str, regexp: Regexp) -> list[str]:
    """As Ruby splits: an empty match right where the last part ended takes one character with it."""
    out: list[str] = []
    search = regexp.search
    begin = start = 0
    empty_before = False
    while start <= len(text) and (found := search(text, start)):
        at, end = found.span()
        if at == end == start:
            if not text:
                out.append("")
                break
            if not empty_before:
                start += 1
                empty_before = True
                continue
            out.append(text[begin : begin + 1])
            begin = start
        else:
            out.append(text[begin:at])
            begin = start = end
        empty_before = False
        out += [group for group in found.groups() if group is not None]
    if begin < len(text):
        out.append(text[begin:])
    while out and not out[-1]:
        out.pop()
    return out


_TARGET: Final = "Variant[Array[String],String] target"
_REPLACEMENT: Final = "Variant[String,Hash[String,String]] replacement"


@function("regsubst", _TARGET, "String pattern", _REPLACEMENT, "Optional[Pattern[/^[GEIM]*$/]] flags?", "Enum['N','E','S','U'] encoding?")
def regsubst(
    context: Context, target: Value, pattern: str, replacement: Value, flags: str | None = None, encoding: str | None = None
) -> Value:
    """The string, or each of the array, with the first match (flag G: all) of the pattern replaced."""
    options = "".join(ruby for flag, ruby in (("E", "x"), ("I", "i"), ("M", "m")) if flag in (flags or ""))
    regexp = Regexp(f"(?{options}:{pattern})" if options else pattern)
    return _substituted(target, regexp, replacement, "G" in (flags or ""))


@regsubst.also(_TARGET, "Variant[Regexp,Type[Regexp]] pattern", _REPLACEMENT, "Pattern[/^G?$/] flags?")
def regsubst_regexp(context: Context, target: Value, pattern: Value, replacement: Value, flags: str = "") -> Value:
    regexp = (pattern.regexp or Regexp("")) if isinstance(pattern, RegexpType) else pattern
    return _substituted(target, regexp, replacement, flags == "G")


def _substituted(target: Value, regexp: Regexp, replacement: Value, everywhere: bool) -> Value:
    new = _hash_template(replacement) if isinstance(replacement, dict) else _template(replacement, regexp)
    if isinstance(target, list):
        return [regexp.substitute(item, new, everywhere=everywhere) for item in target]
    return regexp.substitute(target, new, everywhere=everywhere)


def _hash_template(replacement: dict[str, str]) -> Callable[[Match], str]:
    return lambda found: replacement.get(found[0], "")


_BACK: Final = re.compile(r"\\(?:(\d)|k<(\w+)>|([&`'\\]))")


def _template(replacement: str, regexp: Regexp) -> Callable[[Match], str]:
    """Ruby's replacement text: `\\1`, `\\k<name>`, `\\0` and `\\&` for the whole match, `\\\\` for a backslash."""
    if "\\" not in replacement:
        return lambda found: replacement

    def new(found: Match) -> str:
        def part(back: re.Match[str]) -> str:
            if back[1] is not None:
                number = int(back[1])
                return (found[number] or "") if number <= found.re.groups else ""
            if back[2] is not None:
                numbers = regexp.group_numbers.get(back[2])
                if numbers is None:
                    raise EvaluationError(f"undefined group name reference: {back[2]}")
                return next((text for number in reversed(numbers) if (text := found[number]) is not None), "")
            special = {"&": found[0], "`": found.string[: found.start()], "'": found.string[found.end() :], "\\": "\\"}
            return special[back[3]]

        return _BACK.sub(part, replacement)

    return new


@function("match", "String string", "Variant[Any, Type] pattern")
def match(context: Context, string: str, pattern: Value) -> Value:
    """The match and its groups, or undef; of an array of strings, an array of them."""
    return _match(string, pattern)


@match.also("Array[String] string", "Variant[Any, Type] pattern")
def match_all(context: Context, string: list[str], pattern: Value) -> list[Value]:
    return [_match(text, pattern) for text in string]


def _match(text: str, pattern: Value) -> list[str | None] | None:
    if isinstance(pattern, str | Regexp):
        found = (Regexp(pattern) if isinstance(pattern, str) else pattern).search(text)
        return [found[0], *found.groups()] if found else None
    if isinstance(pattern, AliasType):
        return _match(text, pattern.resolved())
    if isinstance(pattern, RegexpType):
        if pattern.regexp is None:
            raise EvaluationError("Given Regexp Type has no regular expression")
        return _match(text, pattern.regexp)
    if isinstance(pattern, list | VariantType | PatternType):
        several = pattern if isinstance(pattern, list) else pattern.types if isinstance(pattern, VariantType) else pattern.patterns
        return next((parts for one in several if (parts := _match(text, one)) is not None), None)
    kind = ruby_class(pattern)
    raise EvaluationError(f"match() expects pattern of T, where T is String, Regexp, Regexp[r], Pattern[p], or Array[T]. Got {kind}")


@legacy_function("sprintf", -2)
def sprintf(context: Context, format_: Value, *args: Value) -> str:
    """Text by a format as in C: `%d`, `%-5s`, `%<name>s` with a hash."""
    if not isinstance(format_, str):
        raise EvaluationError(f"sprintf(): the format must be a String, got {ruby_class(format_)}")
    return format_text(format_, args)
