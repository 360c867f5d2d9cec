"""The name rules: the one validator for certnames, environments and keys that become file names."""

from __future__ import annotations

import re

from .errors import BadName

MAX_CERTNAME = 64  # octets; the X.520 limit for a common name, which OpenSSL enforces

_LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_FILE_KEY = re.compile(r"[^/\\:\x00-\x1f\x7f]+")
_ENVIRONMENT = re.compile(r"\w+", re.ASCII)
_NOT_IN_ENVIRONMENTS = re.compile(r"\W", re.ASCII)
MAX_ENVIRONMENT = 255
FIRST_SEGMENTS = frozenset({"puppet", "puppet-ca", "status", "metrics", "puppet-admin-api", "pdb", "v2.0"})
"""The first segments of a master's URLs other than those of 3.x, which begin with an environment: no environment has such a name."""


def quoted_for_log(text: str, limit: int = 80) -> str:
    """Return `text` quoted, printable and short: safe in a log line, a terminal and an answer."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "'" + "".join(c if c.isascii() and c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut) + "'"


def valid_certname(text: str) -> str:
    """
    Return `text` itself, when it may name a node.

    ASCII labels of `[a-z0-9_-]` joined by dots, none empty, none ending in `-`, the first not
    starting with `-`, at most 64 octets. Linear in the length, which is checked first.

    Raises:
        BadName: with the rule that is broken.
    Source: the name rule of the security reference; X.520 for the length.
    """
    if not text:
        raise BadName("A certname may not be empty")
    if len(text) > MAX_CERTNAME:
        raise BadName(f"The certname {quoted_for_log(text, 20)} is longer than {MAX_CERTNAME} characters")
    for label in text.split("."):
        if not label:
            raise BadName(f"The certname {quoted_for_log(text)} has an empty label")
        if label[0] not in _FIRST or label[-1] == "-" or not _LABEL.issuperset(label):
            raise BadName(
                f"The certname {quoted_for_log(text)} is not valid",
                hint="Certificate names are lower case: labels of a-z, 0-9, '_' and '-', joined by dots, no '-' at a label's edge.",
            )
    return text


def is_certname(text: str) -> bool:
    """Return whether `text` may name a node."""
    try:
        valid_certname(text)
    except BadName:
        return False
    return True


def valid_requested_certname(text: str, *, master: str = "") -> str:
    """Return a certname for which a stranger may request a certificate: not `ca`, not the master's own."""
    if text in ("ca", master):
        raise BadName(f"The certname {quoted_for_log(text)} is reserved")
    return valid_certname(text)


def valid_environment(text: str) -> str:
    """Return `text` itself, when it may name an environment: ASCII `\\w+`, not reserved; else BadName, in 3.8's words where it has any."""
    if len(text) > MAX_ENVIRONMENT or not _ENVIRONMENT.fullmatch(text):
        raise BadName(f"The environment must be purely alphanumeric, not {quoted_for_log(text)}")
    if text in FIRST_SEGMENTS:
        raise BadName(f"The environment name '{text}' is reserved", hint="URLs of masters begin with it; give it another one.")
    return text


def environment_of_branch(branch: str) -> str:
    """Return the environment that a branch becomes: `_` for each character that names of environments cannot have; raises BadName."""
    return valid_environment(_NOT_IN_ENVIRONMENTS.sub("_", branch))


def valid_file_key(text: str) -> str:
    """Return `text` itself, when it may become one file's name: no separator, no NUL, nothing that climbs; else BadName."""
    if len(text) > 200 or text.startswith((".", "-")) or _FILE_KEY.fullmatch(text) is None:
        raise BadName(f"invalid key {quoted_for_log(text)}")
    return text
