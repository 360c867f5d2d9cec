"""What the agent offers in a handshake, and what it makes of one that failed."""

from __future__ import annotations

import ssl

from aiohttp.client_exceptions import ClientConnectorSSLError

from agent.servers.tls import refusal_of, unverified_context


def test_old_masters_find_a_cipher_and_none_of_small_groups_is_offered() -> None:
    names = [each["name"] for each in unverified_context().get_ciphers()]
    assert not [name for name in names if name.startswith("DHE-")]
    assert names[-1] == "AES128-SHA" and names.index("ECDHE-RSA-AES256-GCM-SHA384") < names.index("AES256-GCM-SHA384")


def test_a_handshake_that_failed_for_another_reason_is_no_refusal_of_our_certificate() -> None:
    failed = ClientConnectorSSLError(None, OSError("dh key too small"))  # type: ignore[arg-type]
    failed.__cause__ = ssl.SSLError(1, "[SSL: DH_KEY_TOO_SMALL] dh key too small")
    assert refusal_of(failed) is None
