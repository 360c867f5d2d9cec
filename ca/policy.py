"""The requests that are stored and those that are signed: pure decisions on a request's facts. Source: protocol reference 5.6."""

from __future__ import annotations

from dataclasses import dataclass

from certs import oids
from certs.csr import RequestFacts
from shared.errors import BadName, BadRequest, Conflict
from shared.names import quoted_for_log, valid_requested_certname

MAX_ALTERNATIVE_NAMES = 100
WEAK_DIGESTS = ("md5", "sha1")


class PolicyViolation(Conflict):
    """Raised for a request that the policy does not sign; `legacy` has the words of 3.8."""


@dataclass(frozen=True, slots=True)
class SigningPolicy:
    """The administrator's additional permissions: from the settings, or the flags of one command."""

    allow_alternative_names: bool = False
    allow_authorization_extensions: bool = False


def check_submission(facts: RequestFacts, name: str, *, master: str = "") -> None:
    """
    Check that a request may be stored under `name`: it is well-formed, strong enough, and some policy can sign it.

    A request that no policy ever signs is refused before it is stored, and so is one that its own key did not sign.

    Args:
        master: the master's own certname, which no request from the network may have.
    Raises:
        BadRequest: the request breaks a rule, which the message names.
    """
    valid_requested_certname(name, master=master)
    check_subject(facts, name)
    check_strength(facts)
    try:
        check_never(facts, name)
    except PolicyViolation as err:
        raise BadRequest(err.message, legacy=err.legacy) from err


def check_subject(facts: RequestFacts, name: str) -> None:
    """Check that the subject is exactly one common name, in a usual string type, equal to `name`."""
    common_names = facts.common_names
    if len(common_names) != 1 or not common_names[0].value:
        raise BadRequest(
            f"The CSR for {quoted_for_log(name)} must have exactly one common name, not {len([c for c in common_names if c.value])}: "
            f"{facts.subject}"
        )
    cn = common_names[0]
    if cn.value != name:
        if cn.value.lower() == name:
            raise BadRequest(
                "Certificate names must be lower case.",
                legacy=f"CSR subject common name {_quoted(cn.value)} does not match expected certname {_quoted(name)}",
            )
        raise BadRequest(
            f"Instance name {_quoted(cn.value)} does not match requested key {_quoted(name)}",
            legacy=f"CSR subject common name {_quoted(cn.value)} does not match expected certname {_quoted(name)}",
        )
    if not cn.alone or facts.other_names or not cn.usual_string:
        raise BadRequest(
            f"The subject of the CSR for {quoted_for_log(name)} must be a single common name as PrintableString or UTF8String: "
            f"{facts.subject}"
        )
    if "*" in name:
        raise BadRequest(
            f"Subject contains a wildcard, which is not allowed: {name}",
            legacy=f"CSR subject contains a wildcard, which is not allowed: /CN={name}",
        )


def check_strength(facts: RequestFacts) -> None:
    """Check that the key and the digest are strong enough, and that the request is signed by its own key."""
    weakness = facts.strength.weakness
    if weakness:
        raise BadRequest(
            f"The CSR is refused: {weakness}", hint="Use an RSA key of 2048 bits or more, an EC key of 256 or more, or Ed25519."
        )
    if facts.signature_hash in WEAK_DIGESTS:
        raise BadRequest(f"The CSR is refused: it is signed with {facts.signature_hash.upper()}", hint="Sign it with SHA-256.")
    if not facts.signature_valid:
        raise BadRequest("CSR contains a public key that does not correspond to the signing key")


def check_never(facts: RequestFacts, name: str) -> None:
    """Refuse what no flag allows: foreign extensions, pp_cli_auth, names other than plain DNS names or addresses."""
    csr = quoted_for_log(name)
    foreign = [e.oid for e in facts.extensions if not oids.in_arc(e.oid, oids.PUPPET_ARC)]
    if foreign:
        raise PolicyViolation(
            f"Found extensions that are not permitted: {', '.join(foreign)}",
            legacy=f"CSR has request extensions that are not permitted: {', '.join(foreign)}",
        )
    if any(e.oid == oids.CLI_AUTH for e in facts.extensions):
        raise PolicyViolation(
            f"CSR {csr} asks for pp_cli_auth, which is never given to a request",
            hint="Only the master's own certificate has it.",
        )
    if any(e.critical for e in facts.extensions):
        raise PolicyViolation(f"CSR {csr} has a critical extension, which is not permitted")
    if len(facts.alternative_names) > MAX_ALTERNATIVE_NAMES:
        raise PolicyViolation(f"CSR {csr} contains more than {MAX_ALTERNATIVE_NAMES} subject alternative names")
    for alternative in facts.alternative_names:
        kind, _, value = alternative.partition(":")
        if kind not in ("DNS", "IP") or not value.isascii() or not value.isprintable() or " " in value or not value:
            raise PolicyViolation(f"CSR {csr} contains a subjectAltName outside the DNS label space: {quoted_for_log(alternative)}")
        if "*" in value:
            raise PolicyViolation(f"CSR {csr} subjectAltName contains a wildcard, which is not allowed: {quoted_for_log(alternative)}")


def check_signing(facts: RequestFacts, name: str, policy: SigningPolicy) -> None:
    """
    Check that `policy` allows signing a stored request.

    Raises:
        PolicyViolation, BadRequest: it may not be signed. All checks of the submission are repeated, because the file
            may have another origin.
    """
    check_subject(facts, name)
    check_strength(facts)
    check_never(facts, name)
    csr = quoted_for_log(name)
    others = [alternative for alternative in facts.alternative_names if alternative != f"DNS:{name}"]
    if others and not policy.allow_alternative_names:
        listed = ", ".join(others)
        raise PolicyViolation(
            f"CSR {csr} contains extra subject alternative names ({listed}), which are disallowed. "
            "To allow subject alternative names, set allow_subject_alt_names to true, or sign it with "
            f"`puppet cert --allow-dns-alt-names sign {name}`.",
            legacy=f"CSR {csr} contains subject alternative names ({listed}), which are disallowed. "
            f"Use `puppet cert --allow-dns-alt-names sign {name}` to sign this request.",
        )
    rights = [e.oid for e in facts.extensions if oids.is_authorization(e.oid)]
    if rights and not policy.allow_authorization_extensions:
        raise PolicyViolation(
            f"CSR {csr} contains authorization extensions ({', '.join(rights)}), which are disallowed. "
            "To allow authorization extensions, set allow_authorization_extensions to true.",
            legacy=f"CSR has request extensions that are not permitted: {', '.join(rights)}",
        )


def check_name(name: str) -> None:
    """Check that a name read from disk may be signed at all; raise BadName, which shows it escaped."""
    try:
        valid_requested_certname(name)
    except BadName as err:
        raise BadName(f"CSR {quoted_for_log(name)} subject contains unprintable or non-ASCII characters, or is no certname") from err


def _quoted(name: str) -> str:
    return f'"{quoted_for_log(name)[1:-1]}"'
