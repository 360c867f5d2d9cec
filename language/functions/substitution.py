"""split, regsubst, match, sprintf: strings and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from shared.errors import EvaluationError
from shared.regexps import Match, Regexp

from ..callables.sprintf import format_text
from ..types.kinds.base import VariantType
from ..types.kinds.scalars import PatternType, RegexpType
from ..types.named.aliases import AliasType
from ..values.core import Value
from ..values.labels import ruby_class
from .api import Context, function, legacy_function


@function("split", "String str", "String pattern")
def split(context: Context, str_: str, pattern: str) -> list[str]:
    """Return the parts between the matches of a pattern, with the texts of its groups between them, without empty parts at the end."""
    return _split(str_, Regexp(pattern))


@split.also("String str", "Regexp pattern")
def split_regexp(context: Context, str_: str, pattern: Regexp) -> list[str]:
    return _split(str_, pattern)


@split.also("String str", "Type[Regexp] pattern")
def split_type(context: Context, str_: str, pattern: RegexpType) -> list[str]:
    return _split(str_, pattern.regexp or Regexp(""))


def _split(text: str, regexp: Regexp) -> list[str]:
    """Return the parts that Ruby's `split` returns: an empty match at the end of the last part takes one character with it."""
    parts: list[str] = []
    search = regexp.search
    part_start = start = 0
    empty_before = False
    while start <= len(text) and (match := search(text, start)):
        match_start, end = match.span()
        if match_start == end == start:
            if not text:
                parts.append("")
                break
            if not empty_before:
                start += 1
                empty_before = True
                continue
            parts.append(text[part_start : part_start + 1])
            part_start = start
        else:
            parts.append(text[part_start:match_start])
            part_start = start = end
        empty_before = False
        parts += [group for group in match.groups() if group is not None]
    if part_start < len(text):
        parts.append(text[part_start:])
    while parts and not parts[-1]:
        parts.pop()
    return parts


Texts: TypeAlias = str | list[str]
Replacement: TypeAlias = str | dict[str, str]
_TARGET: Final = "Variant[Array[String],String] target"
_REPLACEMENT: Final = "Variant[String,Hash[String,String]] replacement"


@function("regsubst", _TARGET, "String pattern", _REPLACEMENT, "Optional[Pattern[/^[GEIM]*$/]] flags?", "Enum['N','E','S','U'] encoding?")
def regsubst(
    context: Context, target: Texts, pattern: str, replacement: Replacement, flags: str | None = None, encoding: str | None = None
) -> Value:
    """Return the string, or the strings of the array, with the first match (with the flag G: all matches) of the pattern replaced."""
    options = "".join(ruby for flag, ruby in (("E", "x"), ("I", "i"), ("M", "m")) if flag in (flags or ""))
    regexp = Regexp(f"(?{options}:{pattern})" if options else pattern)
    return _substitute(target, regexp, replacement, "G" in (flags or ""))


@regsubst.also(_TARGET, "Variant[Regexp,Type[Regexp]] pattern", _REPLACEMENT, "Pattern[/^G?$/] flags?")
def regsubst_regexp(context: Context, target: Texts, pattern: Regexp | RegexpType, replacement: Replacement, flags: str = "") -> Value:
    regexp = (pattern.regexp or Regexp("")) if isinstance(pattern, RegexpType) else pattern
    return _substitute(target, regexp, replacement, flags == "G")


def _substitute(target: Texts, regexp: Regexp, replacement: Replacement, everywhere: bool) -> Value:
    new = _replacement_for_hash(replacement) if isinstance(replacement, dict) else _replacement_for_text(replacement, regexp)
    if isinstance(target, list):
        return [regexp.substitute(item, new, everywhere=everywhere) for item in target]
    return regexp.substitute(target, new, everywhere=everywhere)


def _replacement_for_hash(replacement: dict[str, str]) -> Callable[[Match], str]:
    return lambda match: replacement.get(match[0], "")


_BACK: Final = re.compile(r"\\(?:(\d)|k<(\w+)>|([&`'\\]))")


def _replacement_for_text(replacement: str, regexp: Regexp) -> Callable[[Match], str]:
    """
    Return the function that expands Ruby's replacement text: `\\1`, `\\k<name>`, `\\0` and `\\&` for the whole match, `\\` for a backslash.
    """
    if "\\" not in replacement:
        return lambda match: replacement

    def replace(match: Match) -> str:
        def expand(escape: re.Match[str]) -> str:
            if escape[1] is not None:
                number = int(escape[1])
                return (match[number] or "") if number <= match.re.groups else ""
            if escape[2] is not None:
                numbers = regexp.group_numbers.get(escape[2])
                if numbers is None:
                    raise EvaluationError(f"undefined group name reference: {escape[2]}")
                return next((text for number in reversed(numbers) if (text := match[number]) is not None), "")
            special = {"&": match[0], "`": match.string[: match.start()], "'": match.string[match.end() :], "\\": "\\"}
            return special[escape[3]]

        return _BACK.sub(expand, replacement)

    return replace


@function("match", "String string", "Variant[Any, Type] pattern")
def match(context: Context, string: str, pattern: Value) -> Value:
    """Return the match and its groups, or undef; for an array of strings an array of these."""
    return _match(string, pattern)


@match.also("Array[String] string", "Variant[Any, Type] pattern")
def match_all(context: Context, string: list[str], pattern: Value) -> list[Value]:
    return [_match(text, pattern) for text in string]


def _match(text: str, pattern: Value) -> list[str | None] | None:
    if isinstance(pattern, str | Regexp):
        result = (Regexp(pattern) if isinstance(pattern, str) else pattern).search(text)
        return [result[0], *result.groups()] if result else None
    if isinstance(pattern, AliasType):
        return _match(text, pattern.resolved())
    if isinstance(pattern, RegexpType):
        if pattern.regexp is None:
            raise EvaluationError("Given Regexp Type has no regular expression")
        return _match(text, pattern.regexp)
    if isinstance(pattern, list | VariantType | PatternType):
        patterns = pattern if isinstance(pattern, list) else pattern.types if isinstance(pattern, VariantType) else pattern.patterns
        return next((parts for inner in patterns if (parts := _match(text, inner)) is not None), None)
    kind = ruby_class(pattern)
    raise EvaluationError(f"match() expects pattern of T, where T is String, Regexp, Regexp[r], Pattern[p], or Array[T]. Got {kind}")


@legacy_function("sprintf", -2)
def sprintf(context: Context, format_: Value, *args: Value) -> str:
    """Return a text in a format as in C: `%d`, `%-5s`, `%<name>s` with a hash."""
    if not isinstance(format_, str):
        raise EvaluationError(f"sprintf(): the format must be a String, got {ruby_class(format_)}")
    return format_text(format_, args)
