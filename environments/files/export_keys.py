"""The keys with which masters encrypt what must not be readable in stores and back-ups: exported parameters (decision 053), calls."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shared.data import plainjson
from shared.errors import ConfigError, EvaluationError
from shared.filesystem.files import make_directory, owner_in, write_new

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # a worker that seals nothing does without it

REDACTED = "#<Sensitive [value redacted]>"
"""The text that replaces a Sensitive for all readers. No interpolation gives this text."""
REDACTED_TAG = "redacted:"
"""Begins a tag that names a parameter whose value PuppetDB did not get."""
DEFERRED = "Deferred({'name' => '"
"""The beginning of the text that replaces a Deferred for all readers."""
_KEY_BYTES = 64  # of AES-256 in SIV mode
_HINT = "Copy the key file of the master that sealed it, or run the agent of {} again, so that this master encrypts it again."


class ExportedParameter(NamedTuple):
    """A parameter of a resource that a node exports."""

    certname: str
    type: str
    title: str
    name: str

    def __str__(self) -> str:
        return f"exported {self.type}[{self.title}]['{self.name}'] of {self.certname}"


class CatalogCalls(NamedTuple):
    """The calls of a node's catalog, whose arguments may be secret."""

    certname: str

    def __str__(self) -> str:
        return f"record of the calls of {self.certname}"


Sealable = ExportedParameter | CatalogCalls


class ExportKeys:
    """
    The keys of a file, which is read when the first of them is needed.

    Each line is a key in base64. The first one seals, all of them open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Write a new key if there is no file; raise ConfigError when that fails."""
        folder = self.path.parent
        try:
            if not self.path.exists():
                make_directory(folder, mode=0o750, inherit=True)
                key = base64.b64encode(os.urandom(_KEY_BYTES)) + b"\n"
                write_new(folder, [self.path.name], key, mode=0o600, owner=owner_in(folder))
        except OSError as err:
            raise ConfigError(f"Could not create {self.path}: {err.strerror}", hint="The setting is privatekeydir.") from err

    def seal(self, parameter: Sealable, value: Any) -> str:
        """Return plain data as text that only these keys open, and only as this parameter. Equal data is equal text."""
        key_id, cipher = next(iter(self._usable(parameter).items()))
        sealed = cipher.encrypt(plainjson.dumps(value), _bound_to(parameter))
        return f"{key_id}:{base64.b64encode(sealed).decode()}"

    def open(self, parameter: Sealable, text: str) -> Any:
        """Return the data that was sealed as this parameter; EvaluationError names it and the file."""
        from cryptography.exceptions import InvalidTag

        hint = _HINT.format(parameter.certname)
        ciphers = self._usable(parameter)
        key_id, _, sealed = str(text).partition(":")
        if key_id not in ciphers:
            raise EvaluationError(f"The {parameter} is sealed with the key {key_id}, which is not in {self.path}", hint=hint)
        try:
            opened = ciphers[key_id].decrypt(base64.b64decode(sealed, validate=True), _bound_to(parameter))
            return plainjson.loads_trusted(opened)
        except (InvalidTag, binascii.Error, ValueError) as err:
            raise EvaluationError(f"The {parameter} was not sealed as this parameter with a key of {self.path}", hint=hint) from err

    def _usable(self, parameter: Sealable) -> dict[str, AESSIV]:
        """Return the keys; EvaluationError names the parameter that is of no use without them."""
        try:
            return self._ciphers
        except (OSError, ValueError) as err:
            reason = err.strerror if isinstance(err, OSError) else "it has no line, or one that is not a key (64 bytes in base64)"
            raise EvaluationError(
                f"The {parameter} needs a key of {self.path}: {reason}",
                hint="Restore the file from a backup or from another master; without a file, a master makes a new key when it starts.",
            ) from err

    @cached_property
    def _ciphers(self) -> dict[str, AESSIV]:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        keys = [base64.b64decode(line, validate=True) for line in self.path.read_bytes().splitlines()]
        if not keys:
            raise ValueError
        return {hashlib.sha256(key).hexdigest()[:8]: AESSIV(key) for key in keys}


def is_redacted(value: Any) -> bool:
    """Return whether a stored parameter contains a placeholder instead of its value."""
    if isinstance(value, str):
        return value == REDACTED or value.startswith(DEFERRED)
    if isinstance(value, dict):
        return any(map(is_redacted, value.values()))
    return isinstance(value, list) and any(map(is_redacted, value))


def _bound_to(parameter: Sealable) -> list[bytes]:
    return [plainjson.dumps(list(parameter))]
