"""`sshkey`: the key of an SSH server, as all users of this machine know it. Source: resource layer reference 10.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..ral import ABSENT, Origin, Param, Property, Ref, State, TitlePatterns, Type, Value, ensurable
from ..ral.attributes import text_of
from .kinds.lines import breaks_line, one_word

KEY_TYPES = (
    Value("ssh-dss", aliases=("dsa",)),
    Value("ssh-ed25519", aliases=("ed25519",)),
    Value("ssh-rsa", aliases=("rsa",)),
    Value("ecdsa-sha2-nistp256"),
    Value("ecdsa-sha2-nistp384"),
    Value("ecdsa-sha2-nistp521"),
    Value("sk-ecdsa-sha2-nistp256@openssh.com", aliases=("ecdsa-sk",)),
    Value("sk-ssh-ed25519@openssh.com", aliases=("ed25519-sk",)),
)


def _name(value: Any) -> None:
    text = text_of(value)
    if re.search(r"\s", text) or breaks_line(text):
        raise ValueError("Resourcename cannot include whitespaces")
    if "," in text:
        raise ValueError("No comma in resourcename allowed. If you want to specify aliases use the host_aliases property")
    if text.startswith(("#", "@")):
        raise ValueError(f"A host's name cannot begin with {text[0]}")


def _alias(value: Any) -> None:
    text = text_of(value)
    if re.search(r"\s", text) or breaks_line(text):
        raise ValueError("Aliases cannot include whitespace")
    if "," in text:
        raise ValueError("Aliases must be provided as an array, not a comma-separated list")


class SshkeyAliases(Property[list[str]]):
    """All further names; in the given order."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("host_aliases", ABSENT)
        return ([] if current == ABSENT else list(current)) == [text_of(value) for value in desired]


class Sshkey(Type, name="sshkey"):
    """A host's public key; a host has one of each type, so name and type together identify it."""

    ensure = ensurable()
    key_ = Property(str, check=one_word("Key"), doc="The key itself, in base64.")
    host_aliases = SshkeyAliases(str, many=True, check=_alias, doc="Further names and addresses of the host.")
    target = Property(str, doc="The file; by default /etc/ssh/ssh_known_hosts.")

    name = Param(str, namevar=True, check=_name, doc="The host's name.")
    type_ = Param(str, namevar=True, values=KEY_TYPES, doc="The kind of key.")

    def __init__(self, title: str, parameters: Mapping[str, Any], origin: Origin | None = None) -> None:
        super().__init__(title, parameters, origin)
        self.ref = Ref("sshkey", self.key)

    @classmethod
    def title_patterns(cls) -> TitlePatterns:
        return [(r"(.*?)@(.*)", ["name", "type"]), (r"([^@]+)", ["name"])]

    @property
    def key(self) -> str:
        return f"{self.value_of('name')}@{self.value_of('type') or ''}"
