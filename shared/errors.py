"""
The error tree. Every error says what, where and what to try.

    PuppetError                  500  anything foreseen; the base, never raised for the unforeseen
    ├── BadRequest               400  the caller sent something that cannot be right
    │   ├── BadName                   a certname, environment or key that breaks the name rules
    │   └── BadData                   a body or file that does not parse as what it claims to be
    ├── Denied                   403  an authenticated or anonymous caller may not do this
    ├── NotFound                 404  the thing asked for does not exist
    ├── MethodNotAllowed         405  the thing exists, the verb does not
    │   └── Unsupported               a terminus without this verb
    ├── NotAcceptable            406  no format both sides speak
    ├── Conflict                 409  the state of the thing forbids this
    ├── TooLarge                 413  a limit from the settings was passed
    ├── UnsupportedMediaType     415  a body in a format nobody reads here
    ├── Unavailable              503  not now; `retry_after` seconds
    ├── OutOfSpace               507  the disk is full, or a quota is
    ├── ConfigError                   settings or a configuration file
    ├── CompileError             500  a manifest, template or data file; almost always with `where`
    │   ├── ParseError
    │   └── EvaluationError
    ├── ResourceError                 a type, provider or catalog on the agent
    └── PeerError                     what the other side of a connection did
        ├── PeerAnswered              it answered with an error status
        ├── PeerUnreachable           no connection, or it was lost
        └── PeerNotTrusted            its certificate does not verify
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import ClassVar

_NO_ENVIRONMENT = "On the master, make a folder of that name in a folder of environmentpath, with a manifests/site.pp in it."


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source file; lines and columns count from 1, in characters."""

    file: str | None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return `(file: F, line: L, column: C)`, parts that are unknown left out, as Puppet prints it."""
        parts = [
            f"{label}: {value}"
            for label, value in (("file", self.file), ("line", self.line), ("column", self.column))
            if value not in (None, "")
        ]
        return f"({', '.join(parts)})" if parts else ""


class PuppetError(Exception):
    """
    The base of all foreseen errors; `str()` gives message and place, `hint` is shown on a line of its own.

    `legacy`: the message in Puppet 3.8's words, where they differ.
    """

    status: ClassVar[int] = 500
    issue_kind: ClassVar[str] = "RUNTIME_ERROR"

    def __init__(self, message: str, *, where: Location | None = None, hint: str = "", legacy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.legacy = legacy

    def __str__(self) -> str:
        place = str(self.where) if self.where else ""
        return f"{self.message} {place}" if place else self.message


def octet_place(error: UnicodeDecodeError) -> str:
    """Return the fault of a text in UTF-8, and its place: the column counts octets."""
    before = error.object[: error.start].split(b"\n")
    return f"an octet is not UTF-8 at line {len(before)} column {len(before[-1]) + 1}"


def text_with_hint(error: BaseException) -> str:
    """Return an error's text, and its hint on a line of its own: one error is one record of a log."""
    hint = getattr(error, "hint", "")
    return f"{error}\n{hint}" if hint else str(error)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class BadRequest(PuppetError):
    status = 400


class BadName(BadRequest):
    """A name that breaks its rule; never contains the name unescaped."""


class BadData(BadRequest):
    """A body or a file that is malformed."""


class Denied(PuppetError):
    status = 403
    issue_kind = "FAILED_AUTHORIZATION"


class NotFound(PuppetError):
    status = 404
    issue_kind = "RESOURCE_NOT_FOUND"


class NoEnvironment(NotFound):
    """An environment that does not exist; the reference reports no kind of its own for it."""

    issue_kind = "RUNTIME_ERROR"

    def __init__(self, name: str, *, hint: str = "") -> None:
        super().__init__(f"Could not find environment '{name}'", hint=hint or _NO_ENVIRONMENT)


class NoHandler(NotFound):
    """No such indirection, or one that is never remote."""

    issue_kind = "HANDLER_NOT_FOUND"


class MethodNotAllowed(PuppetError):
    status = 405
    issue_kind = "UNSUPPORTED_METHOD"


class Unsupported(MethodNotAllowed):
    """A terminus that has no such verb, or a feature this implementation does not have; names it."""


class NotAcceptable(PuppetError):
    status = 406
    issue_kind = "UNSUPPORTED_FORMAT"


class MissingHeader(BadRequest):
    issue_kind = "MISSING_HEADER_FIELD"


class Conflict(PuppetError):
    status = 409


class TooLarge(PuppetError):
    status = 413


class UnsupportedMediaType(PuppetError):
    status = 415
    issue_kind = "UNSUPPORTED_MEDIA_TYPE"


class Unavailable(PuppetError):
    """Not now; `retry_after` is in seconds."""

    status = 503

    def __init__(self, message: str, *, retry_after: int = 30, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the system's errors when a disk is full, or somebody's share of it."""


class OutOfSpace(PuppetError):
    status = 507


class ConfigError(PuppetError):
    """A setting or a configuration file is wrong."""


class CompileError(PuppetError):
    """A manifest, template or data file is wrong; `node` is set once the node is known."""

    node: str = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} on node {self.node}" if self.node else text


class ParseError(CompileError):
    """The text is not valid Puppet."""


class EvaluationError(CompileError):
    """Valid Puppet that cannot be evaluated."""


class ResourceError(PuppetError):
    """A resource type, provider or catalog on the agent refuses."""


class WrappedError(PuppetError):
    """The errors that a Ruby error of a module wraps, as the log lists them below it; only ever a cause."""


class PeerError(PuppetError):
    """A failure of the other side of a connection."""

    status = 502


class PeerAnswered(PeerError):
    """The peer answered with an error: `code` is its HTTP status, `body` the text of its answer, shortened."""

    def __init__(self, message: str, *, code: int, body: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.body = body


class PeerUnreachable(PeerError):
    """No connection, a time-out, or a connection lost on the way."""


class PeerNotTrusted(PeerError):
    """The peer's certificate does not verify; nothing was sent."""
