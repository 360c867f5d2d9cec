"""`ssh_authorized_key`: the keys with which users may log in. Source: resource layer reference 10.4."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import ABSENT, Param, Property, Ref, State, Type, Value, ensurable
from ..ral.attributes import text_of
from .kinds.lines import breaks_line, one_line
from .sshkey import KEY_TYPES

AUTHORIZED_TYPES = (
    *(key_type for key_type in KEY_TYPES),
    Value("ssh-rsa-cert-v01@openssh.com"),
    Value("ssh-ed25519-cert-v01@openssh.com"),
    Value("ssh-dss-cert-v01@openssh.com"),
    Value("ecdsa-sha2-nistp256-cert-v01@openssh.com"),
    Value("ecdsa-sha2-nistp384-cert-v01@openssh.com"),
    Value("ecdsa-sha2-nistp521-cert-v01@openssh.com"),
)
_OPTION = re.compile(r'[-a-z0-9A-Z_]+(?:=".*?")?')


def _key(value: Any) -> None:
    text = text_of(value)
    if re.search(r"\s", text) or breaks_line(text):
        raise ValueError(f"Key must not contain whitespace: {text}")


class AuthorizedKeyOptions(Property[list[str]]):
    """All options of a key, in order; none by default."""

    def validate(self, resource: Type, value: Any) -> None:
        text = text_of(value)
        if text != ABSENT and (breaks_line(text) or not _OPTION.fullmatch(text)):
            raise ValueError(
                f"Option {text} is not valid. A single option must either be of the form 'option' or 'option=\"value\"'. "
                "Multiple options must be provided as an array"
            )

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("options", ABSENT)
        return ([] if current in (ABSENT, [ABSENT]) else list(current)) == [value for value in desired if value != ABSENT]


def _target(value: Any) -> None:
    text = text_of(value)
    if text != ABSENT and not text.startswith("/"):
        raise ValueError(f"File paths must be fully qualified, not '{text}'")


class SshAuthorizedKey(Type, name="ssh_authorized_key"):
    """A public key in a user's authorized_keys; the name is the key's comment and has to be unique on the machine."""

    ensure = ensurable()
    type_ = Property(str, values=AUTHORIZED_TYPES, doc="The kind of key.")
    key_ = Property(str, check=_key, doc="The key itself, in base64.")
    user = Property(str, check=one_line("User"), doc="The user whose authorized_keys file has the key.")
    target = Property(str, check=_target, doc="The file; by default .ssh/authorized_keys in the user's home.")
    options = AuthorizedKeyOptions(
        str, many=True, default=lambda _: [ABSENT], doc='What the key may be used for, each `name` or `name="value"`.'
    )

    name = Param(str, namevar=True, check=one_line("Name"), doc="The key's comment.")
    drop_privileges = Param(bool, default=True, doc="Whether the file is the user's business; false: its folder must be root's alone.")

    def validate(self) -> None:
        if self.value_of("target") in (None, ABSENT) and self.wanted("user") is None:
            raise ValueError("Attribute 'user' or 'target' is mandatory")

    def autorequire(self) -> Iterator[Ref]:
        user = self.value_of("user")
        if user:
            yield Ref("user", str(user))
