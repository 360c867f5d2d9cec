"""The order of the bootstrap's steps, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.bootstrap import BootstrapState, BootstrapStep, next_step

LEGACY = BootstrapState(legacy=True)
MODERN = BootstrapState(legacy=False)

CASES = [
    # 3.8: key, CA, certificate?, request at the CA?, send, certificate?, wait
    (LEGACY, {}, BootstrapStep.MAKE_KEY),
    (LEGACY, {"key": True}, BootstrapStep.FETCH_CA),
    (LEGACY, {"key": True, "ca": True}, BootstrapStep.FETCH_CERTIFICATE),
    (LEGACY, {"key": True, "ca": True, "asked": True}, BootstrapStep.FIND_REQUEST),
    (LEGACY, {"key": True, "ca": True, "asked": True, "request_sought": True}, BootstrapStep.SEND_REQUEST),
    (LEGACY, {"key": True, "ca": True, "request": True}, BootstrapStep.FETCH_CERTIFICATE),
    (LEGACY, {"key": True, "ca": True, "request": True, "asked": True}, BootstrapStep.WAIT),
    (LEGACY, {"key": True, "ca": True, "request": True, "asked": True, "waitforcert": 0}, BootstrapStep.GIVE_UP),
    (LEGACY, {"key": True, "ca": True, "certificate": True}, BootstrapStep.FETCH_CRL),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "revocation": False}, BootstrapStep.DONE),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True}, BootstrapStep.DONE),
    # 3.8 refreshes nothing afterwards
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "ca_stale": True}, BootstrapStep.DONE),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "crl_stale": True}, BootstrapStep.REFRESH_CRL),
    (LEGACY, {"key": True, "ca": True, "certificate": True, "crl": True, "crl_stale": True, "revocation": False}, BootstrapStep.DONE),
    # 6.4 and later: CA, CRL, key, send, certificate?, wait
    (MODERN, {}, BootstrapStep.FETCH_CA),
    (MODERN, {"ca": True}, BootstrapStep.FETCH_CRL),
    (MODERN, {"ca": True, "revocation": False}, BootstrapStep.MAKE_KEY),
    (MODERN, {"ca": True, "crl_closed": True}, BootstrapStep.MAKE_KEY),
    (MODERN, {"ca": True, "crl_closed": True, "key": True, "certificate": True}, BootstrapStep.FETCH_CRL),
    (MODERN, {"ca": True, "crl": True}, BootstrapStep.MAKE_KEY),
    (MODERN, {"ca": True, "crl": True, "key": True}, BootstrapStep.SEND_REQUEST),
    (MODERN, {"ca": True, "crl": True, "key": True, "request": True}, BootstrapStep.SEND_REQUEST),
    (MODERN, {"ca": True, "crl": True, "key": True, "request": True, "submitted": True}, BootstrapStep.FETCH_CERTIFICATE),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True}, BootstrapStep.WAIT),
    (MODERN, {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waitforcert": 0}, BootstrapStep.GIVE_UP),
    (
        MODERN,
        {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waited": 10, "maxwaitforcert": 10},
        BootstrapStep.GIVE_UP,
    ),
    (
        MODERN,
        {"ca": True, "crl": True, "key": True, "submitted": True, "asked": True, "waited": 9, "maxwaitforcert": 10},
        BootstrapStep.WAIT,
    ),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True}, BootstrapStep.DONE),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "renewal_due": True}, BootstrapStep.RENEW),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "ca_stale": True, "crl_stale": True}, BootstrapStep.REFRESH_CA),
    (MODERN, {"ca": True, "crl": True, "key": True, "certificate": True, "crl_stale": True}, BootstrapStep.REFRESH_CRL),
    (MODERN, {"ca": True, "key": True, "certificate": True, "revocation": False, "crl_stale": True}, BootstrapStep.DONE),
]


@pytest.mark.parametrize(("base", "changes", "step"), CASES)
def test_the_next_step_follows_from_what_is_there(base: BootstrapState, changes: dict[str, object], step: BootstrapStep) -> None:
    assert next_step(replace(base, **changes)) is step  # type: ignore[arg-type]
