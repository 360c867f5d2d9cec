"""
The default rules, which hold without a file and after the rules of one.

They match whole path segments only: a bare prefix of the reference is written out here, so that no default rule covers more than it
names. Source: protocol reference 4.2 (scheme A) and 4.4 (scheme B).
"""

from __future__ import annotations

from .rules import AclEntry, Below, Exactly, Matcher, OneOf, Rule

EVERYBODY = AclEntry(True, "all", "*")
OWN_NAME = AclEntry(True, "captured", "$1")
ADMINISTRATOR = AclEntry(True, "extensions", "pp_cli_auth", extensions=(("pp_cli_auth", frozenset({"true"})),))

THIS_MASTER = AclEntry(True, "exact", "")
"""Stands for the master itself, whose certname goes in its place; '' is nobody's."""


def rule(name: str, matcher: Matcher, verbs: str, *entries: AclEntry, authenticated: bool = True) -> Rule:
    """Return a default rule for the clients in `entries`, with one of `verbs`."""
    return Rule(name, matcher, entries, frozenset(verbs.split()), authenticated=authenticated)


_FILES = OneOf((Below("/file_metadata"), Below("/file_content"), Below("/file_bucket_file")))

ANYTHING_ELSE = rule("/", Below("/"), "", authenticated=False)
LEGACY_RULES = (
    rule("~ ^/catalog/([^/]+)$", Below("/catalog"), "find", OWN_NAME),
    rule("~ ^/node/([^/]+)$", Below("/node"), "find", OWN_NAME),
    rule("/file", _FILES, "", EVERYBODY),
    rule("/certificate_revocation_list/ca", Exactly("/certificate_revocation_list/ca"), "find", EVERYBODY),
    rule("~ ^/report/([^/]+)$", Below("/report"), "save", OWN_NAME),
    rule("/certificate/ca", Exactly("/certificate/ca"), "find", EVERYBODY, authenticated=False),
    rule("/certificate/", Below("/certificate"), "find", EVERYBODY, authenticated=False),
    rule("/certificate_request", Below("/certificate_request"), "find save", EVERYBODY, authenticated=False),
    rule("/status", Below("/status"), "find", EVERYBODY),
    rule("/v2.0/environments", Exactly("/v2.0/environments"), "find", EVERYBODY),
    ANYTHING_ELSE,
)

MODERN_RULES = (
    rule("/puppet/v3/catalog", Below("/catalog"), "find", OWN_NAME),
    rule("/puppet/v3/node", Below("/node"), "find", OWN_NAME),
    rule("/puppet/v3/report", Below("/report"), "save", OWN_NAME),
    rule("/puppet/v3/facts", Below("/facts"), "save", OWN_NAME),
    rule("/puppet/v3/file_metadata", Below("/file_metadata"), "find search", EVERYBODY),
    rule("/puppet/v3/file_content", Below("/file_content"), "find", EVERYBODY),
    rule("/puppet/v3/file_bucket_file", Below("/file_bucket_file"), "find save", EVERYBODY),
    rule("/puppet/v3/static_file_content", Below("/puppet/v3/static_file_content"), "find", EVERYBODY),
    rule("/puppet/v3/status", Below("/puppet/v3/status"), "find", EVERYBODY),  # of 4 and 5, whose balancers and tools ask for it
)
"""For indirections; the endpoints that are none have rules beside their routes."""
