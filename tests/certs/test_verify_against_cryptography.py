"""
Our path validation gives the verdicts of `cryptography.x509.verification`, with a policy that says what ours demands.

Ours stays because the two differ where Puppet's world needs it:

- The library says only that no chain was found. An agent must name the certificate and the reason in the reference's words, so the
  walk along the chain would have to be done a second time for every refusal.
- The library takes only the keys and signatures of the web's CAs: an Ed25519 key, which our CA offers, and RSA below 2048 bits, which
  old agents have, are refused (`test_keys_that_the_web_does_not_use_are_refused_by_the_library`).
- The library takes every certificate of the bundle for an anchor. Ours wants the chain up to a self-signed root, as Puppet's agents
  do (`test_an_intermediate_alone_is_an_anchor_for_the_library`).
- The library does not look at the signature of an anchor; ours refuses a root that was not signed with its own key
  (`test_a_roots_own_signature_is_nothing_to_the_library`).
- The library understands critical name constraints, which ours refuses as unknown
  (`test_critical_name_constraints_are_understood_by_the_library`).
- Revocation lists are not the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import verify
from certs.keys import PrivateKey
from certs.verify import NotVerified, TrustStore
from tests.support.examples import examples

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
VALIDITY = {"now": (NOW - DAY, NOW + 365 * DAY), "expired": (NOW - 9 * DAY, NOW - DAY), "future": (NOW + DAY, NOW + 9 * DAY)}
KEYS = [ec.generate_private_key(ec.SECP256R1()) for _ in range(5)]
FORGER, CLIENT = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
USAGES = (
    (),
    (ExtendedKeyUsageOID.CLIENT_AUTH,),
    (ExtendedKeyUsageOID.SERVER_AUTH,),
    (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,),
    (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
)


@dataclass(frozen=True)
class Draft:
    """What one certificate of a chain says; the defaults are those of a good CA certificate."""

    validity: str = "now"
    is_authority: bool | None = True  # None: without basicConstraints
    path_length: int | None = None
    signs_certificates: bool | None = True  # None: without keyUsage
    purposes: tuple[x509.ObjectIdentifier, ...] = ()
    host: str = ""
    puppet_extension: str = ""  # critical or plain; '': none
    names_keys: bool = True  # the key identifiers of subject and issuer
    forged: bool = False

    def certificate(self, subject: str, issuer: str, key: PrivateKey, issuer_key: PrivateKey) -> x509.Certificate:
        start, end = VALIDITY[self.validity]
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(issuer))
            .public_key(key.public_key())
            .serial_number(5)
            .not_valid_before(start)
            .not_valid_after(end)
        )
        if self.is_authority is not None:
            constraints = x509.BasicConstraints(self.is_authority, self.path_length if self.is_authority else None)
            builder = builder.add_extension(constraints, critical=True)
        if self.signs_certificates is not None:
            signs = self.signs_certificates
            usage = x509.KeyUsage(True, False, not signs, False, False, signs, signs, False, False)
            builder = builder.add_extension(usage, critical=True)
        if self.purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(self.purposes), critical=False)
        if self.host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(self.host)]), critical=False)
        if self.puppet_extension:
            value = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.1"), b"\x0c\x01x")
            builder = builder.add_extension(value, critical=self.puppet_extension == "critical")
        if self.names_keys:
            builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            issuer_identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
            builder = builder.add_extension(issuer_identifier, critical=False)
        signer = FORGER if self.forged else issuer_key
        return builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def mostly(usual: object, *others: object) -> st.SearchStrategy[object]:
    """Draw `usual` nine times in ten, so that chains of several certificates have few faults."""
    return st.integers(0, 9).flatmap(lambda number: st.sampled_from(others) if number == 9 else st.just(usual))


AUTHORITIES = st.builds(
    Draft,
    validity=mostly("now", "expired", "future"),
    is_authority=mostly(True, False, None),
    path_length=mostly(None, 0, 1),
    signs_certificates=mostly(True, False, None),
    puppet_extension=mostly("", "plain", "critical"),
    names_keys=mostly(True, False),
    forged=mostly(False, True),
)
LEAVES = st.builds(
    Draft,
    validity=mostly("now", "expired", "future"),
    is_authority=mostly(False, True, None),
    signs_certificates=mostly(False, None),
    purposes=st.sampled_from(USAGES),
    host=st.sampled_from(("", "web1.example.com")),
    puppet_extension=mostly("", "plain", "critical"),
    names_keys=mostly(True, False),
    forged=mostly(False, True),
)


def is_verified_by_us(leaf: x509.Certificate, authorities: Sequence[x509.Certificate], untrusted: Sequence[x509.Certificate]) -> bool:
    trust = TrustStore(tuple(authorities), revocation=False)
    try:
        verify.verify(leaf, trust, now=NOW, purpose="client", untrusted=untrusted)
    except NotVerified:
        return False
    return True


def is_verified_by_the_library(
    leaf: x509.Certificate, authorities: Sequence[x509.Certificate], untrusted: Sequence[x509.Certificate]
) -> bool:
    """Whether the library finds a chain, with the demands of ours: who may issue, and what the leaf is for."""

    def check_authority(policy: object, certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
        if not constraints.ca:
            raise ValueError("no authority")

    def check_usage(policy: object, certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
        if usage is not None and not usage.key_cert_sign:
            raise ValueError("signs no certificates")

    def check_purpose(policy: object, certificate: x509.Certificate, purposes: x509.ExtendedKeyUsage | None) -> None:
        allowed = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
        if purposes is not None and not allowed & set(purposes):
            raise ValueError("not for clients")

    either, permit_all = verification.Criticality.AGNOSTIC, verification.ExtensionPolicy.permit_all()
    authority_policy = permit_all.require_present(x509.BasicConstraints, either, check_authority)
    authority_policy = authority_policy.may_be_present(x509.KeyUsage, either, check_usage)
    leaf_policy = permit_all.may_be_present(x509.ExtendedKeyUsage, either, check_purpose)
    builder = verification.PolicyBuilder().store(verification.Store(list(authorities))).time(NOW).max_chain_depth(verify.MAX_CHAIN - 2)
    verifier = builder.extension_policies(ca_policy=authority_policy, ee_policy=leaf_policy).build_client_verifier()
    try:
        verifier.verify(leaf, list(untrusted))
    except verification.VerificationError:
        return False
    return True


def chain_of(drafts: Sequence[Draft]) -> list[x509.Certificate]:
    """Return the certificates from the root down to the leaf."""
    chain: list[x509.Certificate] = []
    issuer, issuer_key = "root", KEYS[0]
    for depth, draft in enumerate(drafts):
        subject = "root" if depth == 0 else f"authority {depth}" if depth < len(drafts) - 1 else "web1"
        key = CLIENT if depth == len(drafts) - 1 else KEYS[depth]
        chain.append(draft.certificate(subject, issuer, key, issuer_key))
        issuer, issuer_key = subject, key
    return chain


@pytest.mark.slow
@given(st.lists(AUTHORITIES, min_size=1, max_size=4), LEAVES, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(200), deadline=None)
def test_both_give_the_same_verdict(authorities: list[Draft], leaf: Draft, has_all: bool, random) -> None:
    first, *others = authorities
    root, *intermediates, certificate = chain_of([replace(first, forged=False), *others, leaf])
    untrusted = intermediates if has_all else intermediates[1:]
    random.shuffle(untrusted)
    assert is_verified_by_us(certificate, [root], untrusted) == is_verified_by_the_library(certificate, [root], untrusted)


def test_of_two_authorities_with_one_name_both_find_the_issuer() -> None:
    old, new = (Draft().certificate("root", "root", key, key) for key in KEYS[:2])
    for key in KEYS[:2]:
        leaf = Draft(is_authority=None, signs_certificates=None).certificate("web1", "root", CLIENT, key)
        for authorities in ([old, new], [new, old]):
            assert is_verified_by_us(leaf, authorities, []) and is_verified_by_the_library(leaf, authorities, [])


LEAF = Draft(is_authority=False, signs_certificates=False)


@pytest.mark.parametrize(
    "key", [ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 1024)], ids=["Ed25519", "RSA of 1024 bits"]
)
def test_keys_that_the_web_does_not_use_are_refused_by_the_library(key: PrivateKey) -> None:
    root = Draft().certificate("root", "root", key, key)
    leaf = LEAF.certificate("web1", "root", CLIENT, key)
    assert (is_verified_by_us(leaf, [root], []), is_verified_by_the_library(leaf, [root], [])) == (True, False)


def test_an_intermediate_alone_is_an_anchor_for_the_library() -> None:
    _, intermediate, leaf = chain_of([Draft(), Draft(), LEAF])
    assert (is_verified_by_us(leaf, [intermediate], []), is_verified_by_the_library(leaf, [intermediate], [])) == (False, True)


def test_a_roots_own_signature_is_nothing_to_the_library() -> None:
    root, leaf = chain_of([Draft(forged=True), LEAF])
    assert (is_verified_by_us(leaf, [root], []), is_verified_by_the_library(leaf, [root], [])) == (False, True)


def test_critical_name_constraints_are_understood_by_the_library() -> None:
    start, end = VALIDITY["now"]
    constraints = x509.NameConstraints([x509.DNSName("example.com")], None)
    builder = x509.CertificateBuilder(_name("root"), _name("root"), KEYS[0].public_key(), 1, start, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    root = builder.add_extension(constraints, critical=True).sign(KEYS[0], hashes.SHA256())
    leaf = Draft(is_authority=False, signs_certificates=False, host="web1.example.com").certificate("web1", "root", CLIENT, KEYS[0])
    assert (is_verified_by_us(leaf, [root], []), is_verified_by_the_library(leaf, [root], [])) == (False, True)
