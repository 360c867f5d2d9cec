"""Faces that are an indirection and no more, as Puppet 3.x has them: `puppet status`, `file`, `resource_type` and those of certificates."""

from __future__ import annotations

from collections.abc import Sequence

from ..modulefaces.builtin import command_for


def certificate_request(argv: Sequence[str]) -> int:
    """Run `puppet certificate_request …`; the exit code."""
    return command_for("certificate_request").run(argv)


def certificate_revocation_list(argv: Sequence[str]) -> int:
    """Run `puppet certificate_revocation_list …`; the exit code."""
    return command_for("certificate_revocation_list").run(argv)


def file(argv: Sequence[str]) -> int:
    """Run `puppet file …`; the exit code."""
    return command_for("file").run(argv)


def resource_type(argv: Sequence[str]) -> int:
    """Run `puppet resource_type …`; the exit code."""
    return command_for("resource_type").run(argv)


def status(argv: Sequence[str]) -> int:
    """Run `puppet status …`; the exit code."""
    return command_for("status").run(argv)
