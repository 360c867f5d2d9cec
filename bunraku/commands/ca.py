"""Manage the certificate authority (the face of 3.x)."""

from __future__ import annotations

from dataclasses import replace

from ca.commands import puppet_cert

from .cert import run_on_ca

_SPEC = replace(puppet_cert.COMMAND, name="ca")
main = replace(_SPEC, call=lambda argv: run_on_ca(_SPEC, puppet_cert.ca, argv))
