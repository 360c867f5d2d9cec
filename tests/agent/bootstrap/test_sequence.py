"""The order of the bootstrap's steps, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.bootstrap import State, Step, next_step

LEGACY = State(legacy=True)
MODERN = State(legacy=False)

CASES = [
    # 3.8: key, CA, certificate?, request at the CA?, send, certificate?, wait
    (LEGACY, {}, Step.MAKE_KEY),
    (LEGACY, {"key": True}, Step.FETCH_CA),
    (LEGACY, {"key": True, "ca": True}, Step.FETCH_CERTIFICATE),
    (LEGACY, {"key": True, "ca": True, "asked": True}, Step.FIND_REQUEST),
    (LEGACY, {"key": True, "ca": True, "asked": True, "request_sought": True}, Step.SEND_REQUEST),
    (LEGACY, {"key": True, "ca": True, "request": True}, Step.FETCH_CERTIFICATE),
    (LEGACY, {"key": True, "ca": True, "request": True, "asked": True}, Step.WAIT),
    (LEGACY, {"key": True, "ca": True, "request": True, "asked": True, "waitforcert": 0}, Step.GIVE_UP),
    (LEGACY, {"key": True, "ca": True, "certificate": True}, Step.FETCH_CRL),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "revocation": False}, Step.DONE),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True}, Step.DONE),
    # 3.8 refreshes nothing afterwards
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "ca_stale": True}, Step.DONE),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "crl_stale": True}, Step.REFRESH_CRL),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "crl_stale": True, "revocation": False}, Step.DONE),
    # 6.4 and later: CA, CRL, key, send, certificate?, wait
    (MODERN, {}, Step.FETCH_CA),
    (MODERN, {"ca": True}, Step.FETCH_CRL),
    (MODERN, {"ca": True, "revocation": False}, Step.MAKE_KEY),
    (MODERN, {"ca": True, "crl_closed": True}, Step.MAKE_KEY),
    (MODERN, {"ca": True, "crl_closed": True, "key": True, "certificate": True}, Step.FETCH_CRL),
    (MODERN, {"ca": True, "crl": True}, Step.MAKE_KEY),
    (MODERN, {"ca": True, "crl": True, "key": True}, Step.SEND_REQUEST),
    (MODERN, {"ca": True, "crl": True, "key": True, "request": True}, Step.SEND_REQUEST),
    (MODERN, {"ca": True, "crl": True, "key": True, "request": True, "submitted": True}, Step.FETCH_CERTIFICATE),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True}, Step.WAIT),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waitforcert": 0}, Step.GIVE_UP),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waited": 10, "maxwaitforcert": 10}, Step.GIVE_UP),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waited": 9, "maxwaitforcert": 10}, Step.WAIT),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True}, Step.DONE),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "renewal_due": True}, Step.RENEW),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "ca_stale": True, "crl_stale": True}, Step.REFRESH_CA),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "crl_stale": True}, Step.REFRESH_CRL),
    (MODERN, {"ca": True, "key": True, "certificate": True, "revocation": False, "crl_stale": True}, Step.DONE),
]


@pytest.mark.parametrize(("base", "changes", "step"), CASES)
def test_the_next_step_follows_from_what_is_there(base: State, changes: dict[str, object], step: Step) -> None:
    assert next_step(replace(base, **changes)) is step  # type: ignore[arg-type]
