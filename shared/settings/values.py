"""The value types of settings: how a text in puppet.conf or on the command line is converted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from ..data.durations import duration, ttl
from ..filesystem.checksums import ALGORITHMS, is_algorithm
from .declarations import ValueReader

WARNING_KINDS = ("deprecations", "undefined_variables", "undefined_resources")
_SIZES = {"": 1, "k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30, "gib": 2**30}
_SIZE = re.compile(r"(\d{1,15})\s*([a-z]*)", re.ASCII)


def timeout(value: str) -> str:
    """Return the text of a duration or `unlimited`, when it is one."""
    ttl(value)
    return value


def size(value: Any) -> int:
    """Return bytes of `4096`, `64k`, `16MiB`, `1g`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(str(value).lower())
    if not match or match[2] not in _SIZES:
        raise ValueError(f"Invalid size '{value}'; write bytes, or a number with KiB, MiB or GiB")
    return int(match[1]) * _SIZES[match[2]]


def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text in ("true", "yes", "on", "1"):
        return True
    if text in ("false", "no", "off", "0", ""):
        return False
    raise ValueError(f"Invalid value '{value}' for a boolean; write true or false")


def words(value: Any) -> tuple[str, ...]:
    """Return the items of a comma separated list."""
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return tuple(part.strip() for part in str(value or "").split(",") if part.strip())


def warning_kinds(value: Any) -> tuple[str, ...]:
    """Return the items of a comma-separated list; raise ValueError for an unknown kind of warning."""
    kinds = words(value)
    if strange := [kind for kind in kinds if kind not in WARNING_KINDS]:
        raise ValueError(f"Cannot disable unrecognized warning types '{','.join(strange)}'; there are {', '.join(WARNING_KINDS)}")
    return kinds


def paths(value: Any) -> tuple[Path, ...]:
    """Return the folders of a list that `:` separates."""
    if isinstance(value, list | tuple):
        return tuple(Path(item) for item in value)
    return tuple(Path(part) for part in str(value or "").split(":") if part)


def priority(value: Any) -> int | Literal[""]:
    """Return the niceness of a word or a number; '' is unchanged."""
    text = str(value).strip()
    niceness = {"high": -10, "normal": 0, "low": 10, "idle": 19}.get(text)
    if niceness is None and re.fullmatch(r"[+-]?\d{1,3}", text, re.ASCII):
        niceness = int(text)
    if not text:
        return ""
    if niceness is None or not -20 <= niceness <= 19:
        raise ValueError(f"Invalid priority format '{value}'; write high, normal, low, idle, or a number from -20 to 19")
    return niceness


def checksum_types(value: Any) -> tuple[str, ...]:
    """Return the items of a comma-separated list; raise ValueError for an unknown checksum type."""
    types = words(value)
    if strange := [name for name in types if not is_algorithm(name) or name == "none"]:
        allowed = ", ".join(name for name in ALGORITHMS if name != "none")
        raise ValueError(f"Invalid value '{strange[0]}'; allowed values are {allowed}")
    return types


def ciphers(value: Any) -> str:
    """Return a list of ciphers that OpenSSL takes."""
    text = str(value)
    if text:
        import ssl  # few settings need it

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(text)
        except ssl.SSLError as err:
            raise ValueError(f"Invalid list of ciphers '{text}'; write names as `openssl ciphers` shows them") from err
    return text


def revocation(value: Any) -> str:
    text = str(value).lower()
    mode = {"true": "chain", "chain": "chain", "leaf": "leaf", "false": "false"}.get(text)
    if mode is None:
        raise ValueError(f"Invalid certificate revocation value '{value}': must be one of 'true', 'chain', 'leaf', or 'false'")
    return mode


def ruby_facts(value: Any) -> str:
    text = str(value).lower()
    if text == "facter":
        return text
    try:
        return "true" if boolean(value) else "false"
    except ValueError as err:
        raise ValueError(f"Invalid value '{value}'; write true, false or facter") from err


def autosign(value: Any) -> bool | Path:
    text = str(value)
    if text.lower() in ("true", "false", ""):
        return text.lower() == "true"
    if not text.startswith("/"):
        raise ValueError(f"Invalid autosign value '{value}': must be 'true'/'false' or an absolute path")
    return Path(text)


def _print_seconds(value: int | None) -> str:
    return "unlimited" if value is None else str(value)


_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\x20-\x7e]*)", re.ASCII)
_OF_THE_PROTOCOL = frozenset({"host", "connection", "transfer-encoding", "te", "upgrade", "expect", "trailer"})


def headers(value: Any) -> tuple[str, ...]:
    """
    Return `name:value` texts, comma-separated; raise ValueError for a text that is not a header, or a header that a setting must not set.
    """
    lines = words(value)
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None or match[1].lower() in _OF_THE_PROTOCOL or match[1].lower().startswith("content-"):
            raise ValueError(f"Invalid header '{line}'; write name:value, with none of the names that belong to the protocol itself")
    return lines


Duration = Annotated[int, ValueReader(duration)]  # seconds
Ttl = Annotated[int | None, ValueReader(ttl, write=_print_seconds)]  # seconds; None: unlimited
Timeout = Annotated[str, ValueReader(timeout, texts_only=True)]  # as it was written; `ttl` gives its seconds
Size = Annotated[int, ValueReader(size)]  # bytes
Flag = Annotated[bool, ValueReader(boolean)]
Words = Annotated[tuple[str, ...], ValueReader(words)]
Headers = Annotated[tuple[str, ...], ValueReader(headers)]
Ciphers = Annotated[str, ValueReader(ciphers)]
ChecksumTypes = Annotated[tuple[str, ...], ValueReader(checksum_types)]
Priority = Annotated[int | Literal[""], ValueReader(priority)]
WarningKinds = Annotated[tuple[str, ...], ValueReader(warning_kinds)]
Paths = Annotated[tuple[Path, ...], ValueReader(paths)]
Revocation = Annotated[Literal["chain", "leaf", "false"], ValueReader(revocation)]
RubyFacts = Annotated[Literal["true", "false", "facter"], ValueReader(ruby_facts)]
Autosign = Annotated[bool | Path, ValueReader(autosign)]


def setting_text(value: Any) -> str:
    """Return a value as `puppet config print` shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "unlimited"
    if isinstance(value, tuple):
        return (":" if value and isinstance(value[0], Path) else ",").join(str(item) for item in value)
    return str(value)
