"""The fact ssh: the host's public keys and their fingerprints."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from .host import Host

_FOLDERS = ("/etc/ssh", "/usr/local/etc/ssh", "/etc", "/usr/local/etc", "/etc/opt/ssh")
_NAMES = {"ssh-rsa": ("rsa", 1), "ssh-dss": ("dsa", 2), "ecdsa-sha2-nistp256": ("ecdsa", 3), "ssh-ed25519": ("ed25519", 4)}


def parse_key(text: str) -> dict[str, Any]:
    """Return one entry of the fact by the key's short name; {} for a kind of key that Facter does not know. SSHFP: RFC 4255, 6594, 7479."""
    words = text.split()
    if len(words) < 2 or words[0] not in _NAMES:
        return {}
    name, number = _NAMES[words[0]]
    try:
        key = base64.b64decode(words[1])
    except binascii.Error:
        return {}
    fingerprints = {
        "sha1": f"SSHFP {number} 1 {hashlib.sha1(key, usedforsecurity=False).hexdigest()}",
        "sha256": f"SSHFP {number} 2 {hashlib.sha256(key).hexdigest()}",
    }
    return {name: {"fingerprints": fingerprints, "key": words[1], "type": words[0]}}


def resolve_ssh(host: Host) -> dict[str, Any]:
    """Return the fact ssh; of two keys of one kind the last folder's counts, as in Facter."""
    keys: dict[str, Any] = {}
    for folder in _FOLDERS:
        for kind in ("rsa", "dsa", "ecdsa", "ed25519"):
            keys |= parse_key(host.read(f"{folder}/ssh_host_{kind}_key.pub"))
    return {"ssh": keys} if keys else {}
