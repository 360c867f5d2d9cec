"""Which requests are kept and which are signed: pure decisions on a request's facts. Source: protocol reference 5.6."""

from __future__ import annotations

from dataclasses import dataclass

from certs import oids
from certs.csr import RequestFacts
from shared.errors import BadName, BadRequest, Conflict
from shared.names import quoted_for_log, valid_requested_certname

MAX_ALTERNATIVE_NAMES = 100
WEAK_DIGESTS = ("md5", "sha1")


class PolicyViolation(Conflict):
    """A request that the policy does not sign as it is; `legacy` has 3.8's words."""


def _refused(message: str, legacy: str = "", *, hint: str = "") -> PolicyViolation:
    error = PolicyViolation(message, hint=hint)
    error.legacy = legacy or message
    return error


def _bad(message: str, legacy: str = "", *, hint: str = "") -> BadRequest:
    error = BadRequest(message, hint=hint)
    error.legacy = legacy or message
    return error


@dataclass(frozen=True, slots=True)
class SigningPolicy:
    """What the administrator allows beyond the usual: the settings, or the flags of one command."""

    allow_alternative_names: bool = False
    allow_authorization_extensions: bool = False


def check_submission(facts: RequestFacts, name: str, *, master: str = "") -> None:
    """
    A request may be stored under `name`: it is well made, strong enough, and can be signed under some policy.

    What no policy would ever sign is refused here, before anything is stored, and so is a request that its own
    key did not sign.

    Args:
        master: the master's own certname, which no request from the network may have.
    Raises:
        BadRequest: with the rule that is broken.
    """
    valid_requested_certname(name, master=master)
    check_subject(facts, name)
    check_strength(facts)
    try:
        check_never(facts, name)
    except PolicyViolation as err:
        raise _bad(err.message, err.legacy) from err


def check_subject(facts: RequestFacts, name: str) -> None:
    """Exactly one common name, in a usual string type, equal to `name`, and nothing else in the subject."""
    found = facts.common_names
    if len(found) != 1 or not found[0].value:
        raise _bad(
            f"The CSR for {quoted_for_log(name)} must have exactly one common name, not {len([c for c in found if c.value])}: "
            f"{facts.subject}"
        )
    cn = found[0]
    if cn.value != name:
        if cn.value.lower() == name:
            raise _bad(
                "Certificate names must be lower case.",
                f"CSR subject common name {_quoted(cn.value)} does not match expected certname {_quoted(name)}",
            )
        raise _bad(
            f"Instance name {_quoted(cn.value)} does not match requested key {_quoted(name)}",
            f"CSR subject common name {_quoted(cn.value)} does not match expected certname {_quoted(name)}",
        )
    if not cn.alone or facts.other_names or not cn.usual_string:
        raise _bad(
            f"The subject of the CSR for {quoted_for_log(name)} must be a single common name as PrintableString or UTF8String: "
            f"{facts.subject}"
        )
    if "*" in name:
        raise _bad(
            f"Subject contains a wildcard, which is not allowed: {name}",
            f"CSR subject contains a wildcard, which is not allowed: /CN={name}",
        )


def check_strength(facts: RequestFacts) -> None:
    """The key and the digest are strong enough, and the request is signed by its own key."""
    weakness = facts.strength.weakness
    if weakness:
        raise _bad(f"The CSR is refused: {weakness}", hint="Use an RSA key of 2048 bits or more, an EC key of 256 or more, or Ed25519.")
    if facts.signature_hash in WEAK_DIGESTS:
        raise _bad(f"The CSR is refused: it is signed with {facts.signature_hash.upper()}", hint="Sign it with SHA-256.")
    if not facts.signature_valid:
        raise _bad("CSR contains a public key that does not correspond to the signing key")


def check_never(facts: RequestFacts, name: str) -> None:
    """Refused for what no flag allows: foreign extensions, pp_cli_auth, names that are not plain DNS names or addresses."""
    foreign = [e.oid for e in facts.extensions if not oids.in_arc(e.oid, oids.PUPPET_ARC)]
    if foreign:
        raise _refused(
            f"Found extensions that are not permitted: {', '.join(foreign)}",
            f"CSR has request extensions that are not permitted: {', '.join(foreign)}",
        )
    if any(e.oid == oids.CLI_AUTH for e in facts.extensions):
        raise _refused(
            f"CSR {_single(name)} asks for pp_cli_auth, which is never given to a request", hint="Only the master's own certificate has it."
        )
    if any(e.critical for e in facts.extensions):
        raise _refused(f"CSR {_single(name)} has a critical extension, which is not permitted")
    if len(facts.alternative_names) > MAX_ALTERNATIVE_NAMES:
        raise _refused(f"CSR {_single(name)} contains more than {MAX_ALTERNATIVE_NAMES} subject alternative names")
    for alternative in facts.alternative_names:
        kind, _, value = alternative.partition(":")
        if kind not in ("DNS", "IP") or not value.isascii() or not value.isprintable() or " " in value or not value:
            raise _refused(f"CSR {_single(name)} contains a subjectAltName outside the DNS label space: {quoted_for_log(alternative)}")
        if "*" in value:
            raise _refused(f"CSR {_single(name)} subjectAltName contains a wildcard, which is not allowed: {quoted_for_log(alternative)}")


def check_signing(facts: RequestFacts, name: str, policy: SigningPolicy) -> None:
    """
    A stored request may be signed under `policy`.

    Raises:
        PolicyViolation, BadRequest: the reason; the request stays where it is. All checks of the submission are made
            again: the file may have come there another way.
    """
    check_subject(facts, name)
    check_strength(facts)
    check_never(facts, name)
    others = [alternative for alternative in facts.alternative_names if alternative != f"DNS:{name}"]
    if others and not policy.allow_alternative_names:
        listed = ", ".join(others)
        raise _refused(
            f"CSR {_single(name)} contains extra subject alternative names ({listed}), which are disallowed. "
            "To allow subject alternative names, set allow_subject_alt_names to true, or sign it with "
            f"`puppet cert --allow-dns-alt-names sign {name}`.",
            f"CSR {_single(name)} contains subject alternative names ({listed}), which are disallowed. "
            f"Use `puppet cert --allow-dns-alt-names sign {name}` to sign this request.",
        )
    rights = [e.oid for e in facts.extensions if oids.is_authorization(e.oid)]
    if rights and not policy.allow_authorization_extensions:
        raise _refused(
            f"CSR {_single(name)} contains authorization extensions ({', '.join(rights)}), which are disallowed. "
            "To allow authorization extensions, set allow_authorization_extensions to true.",
            f"CSR has request extensions that are not permitted: {', '.join(rights)}",
        )


def check_name(name: str) -> None:
    """A name found on disk may be signed at all; BadName shows it escaped."""
    try:
        valid_requested_certname(name)
    except BadName as err:
        raise BadName(f"CSR {quoted_for_log(name)} subject contains unprintable or non-ASCII characters, or is no certname") from err


def _single(name: str) -> str:
    return quoted_for_log(name)


def _quoted(name: str) -> str:
    return f'"{quoted_for_log(name)[1:-1]}"'
