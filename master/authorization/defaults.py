"""
The default rules, which hold without a file and after the rules of one.

They match whole path segments only: a bare prefix of the reference is written out here, so that no default rule covers more than it
names. Source: protocol reference 4.2 (scheme A) and 4.4 (scheme B).
"""

from __future__ import annotations

from .rules import AclEntry, Below, Exactly, Matcher, OneOf, Rule

_EVERYBODY = AclEntry(True, "all", "*")
_OWN_NAME = AclEntry(True, "captured", "$1")
_ADMINISTRATOR = AclEntry(True, "extensions", "pp_cli_auth", extensions=(("pp_cli_auth", frozenset({"true"})),))


def _rule(name: str, matcher: Matcher, verbs: str, *entries: AclEntry, authenticated: bool = True) -> Rule:
    return Rule(name, matcher, entries, frozenset(verbs.split()), authenticated=authenticated)


_FILES = OneOf((Below("/file_metadata"), Below("/file_content"), Below("/file_bucket_file")))

LEGACY_RULES = (
    _rule("~ ^/catalog/([^/]+)$", Below("/catalog"), "find", _OWN_NAME),
    _rule("~ ^/node/([^/]+)$", Below("/node"), "find", _OWN_NAME),
    _rule("/file", _FILES, "", _EVERYBODY),
    _rule("/certificate_revocation_list/ca", Exactly("/certificate_revocation_list/ca"), "find", _EVERYBODY),
    _rule("~ ^/report/([^/]+)$", Below("/report"), "save", _OWN_NAME),
    _rule("/certificate/ca", Exactly("/certificate/ca"), "find", _EVERYBODY, authenticated=False),
    _rule("/certificate/", Below("/certificate"), "find", _EVERYBODY, authenticated=False),
    _rule("/certificate_request", Below("/certificate_request"), "find save", _EVERYBODY, authenticated=False),
    _rule("/status", Below("/status"), "find", _EVERYBODY),
    _rule("/v2.0/environments", Exactly("/v2.0/environments"), "find", _EVERYBODY),
    _rule("/", Below("/"), "", authenticated=False),
)

_CA = "/puppet-ca/v1"
_STATUS = OneOf((Below("/certificate_status"), Below(f"{_CA}/certificate_statuses")))

MODERN_RULES = (
    _rule("/puppet/v3/catalog", Below("/catalog"), "find", _OWN_NAME),
    _rule("/puppet/v3/node", Below("/node"), "find", _OWN_NAME),
    _rule("/puppet/v3/report", Below("/report"), "save", _OWN_NAME),
    _rule("/puppet/v3/facts", Below("/facts"), "save", _OWN_NAME),
    _rule("/puppet/v3/file_metadata", Below("/file_metadata"), "find search", _EVERYBODY),
    _rule("/puppet/v3/file_content", Below("/file_content"), "find", _EVERYBODY),
    _rule("/puppet/v3/file_bucket_file", Below("/file_bucket_file"), "find save", _EVERYBODY),
    _rule("/puppet/v3/static_file_content", Below("/puppet/v3/static_file_content"), "find", _EVERYBODY),
    _rule("/puppet/v3/tasks", Below("/puppet/v3/tasks"), "find", _EVERYBODY),
    _rule("/puppet/v3/status", Below("/puppet/v3/status"), "find", _EVERYBODY),  # of 4 and 5, whose balancers and tools ask for it
    _rule("/puppet/v3/environments", Exactly("/puppet/v3/environments"), "find", _EVERYBODY),
    _rule("/v2.0/environments", Exactly("/v2.0/environments"), "find", _EVERYBODY),
    _rule(f"{_CA}/certificate", Below("/certificate"), "find", _EVERYBODY, authenticated=False),
    _rule(f"{_CA}/certificate_request", Below("/certificate_request"), "find save", _EVERYBODY, authenticated=False),
    _rule(f"{_CA}/crl", Exactly("/certificate_revocation_list/ca"), "find", _EVERYBODY, authenticated=False),
    _rule(f"{_CA}/crl upload", Exactly(f"{_CA}/certificate_revocation_list"), "save", _ADMINISTRATOR),
    _rule(f"{_CA}/certificate_status", _STATUS, "find search save destroy", _ADMINISTRATOR),
    _rule(f"{_CA}/expirations", Exactly(f"{_CA}/expirations"), "find", _EVERYBODY),
    _rule(f"{_CA}/clean", Exactly(f"{_CA}/clean"), "save", _ADMINISTRATOR),
    _rule(f"{_CA}/sign", Below(f"{_CA}/sign"), "save", _ADMINISTRATOR),
    _rule(f"{_CA}/certificate_renewal", Exactly(f"{_CA}/certificate_renewal"), "save", _EVERYBODY),
    # A signed answer costs a signature of the CA, so that strangers get none; a rule of the site may allow it.
    _rule(f"{_CA}/ocsp", OneOf((Below(f"{_CA}/ocsp"), Below("/ocsp"))), "find save", _EVERYBODY),
    _rule("/status/v1/simple", Below("/status/v1/simple"), "find", _EVERYBODY, authenticated=False),
    _rule("/status/v1/services", Below("/status/v1/services"), "find", _EVERYBODY, authenticated=False),
    _rule("/", Below("/"), "", authenticated=False),
)
