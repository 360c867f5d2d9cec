"""
URLs of both schemes, both ways.

    scheme A   /<environment>/<indirection>/<key>                          3.x
    scheme B   /puppet/v3/<indirection>/<key>?environment=<environment>    4 to 8
               /puppet-ca/v1/<indirection>/<key>

Parsing decodes percent signs once, here and nowhere else: authorization and terminus see the same key. Source: protocol
reference 2.1 to 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote, urlencode

from ..errors import BadName, BadRequest
from ..names import FIRST_SEGMENTS, quoted_for_log, valid_environment
from ..wire import percent
from ..wire.dialects import LEGACY, MODERN, Dialect
from .core import Indirection, Model, Option, Request

Verb = Literal["find", "search", "save", "destroy", "head"]

# Far more than a request of Puppet has: all facts are one parameter.
MAX_FIELDS = 1000  # parameters in a query or form
MAX_SEPARATORS = 2 * MAX_FIELDS  # of them; some clients end with one, or double them
# Puppet's own limit, above which it sends a find as POST.
MAX_GET = 1024  # octets of a request line before a find becomes a POST

METHODS: Mapping[tuple[str, str], Verb] = {
    ("GET", "singular"): "find",
    ("POST", "singular"): "find",
    ("PUT", "singular"): "save",
    ("DELETE", "singular"): "destroy",
    ("HEAD", "singular"): "head",
    ("GET", "plural"): "search",
}
_KNOWN_METHODS = frozenset(method for method, _ in METHODS)
# Names that end with an s without being a plural.
_SINGULAR = frozenset({"facts", "status", "certificate_status"})
_PLURAL = frozenset({"inventory"})
_NAME = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class IndirectorCall:
    """
    A request's URL, parsed. `environment` is None when scheme B's parameter is missing; `key` may be ''.

    `prefix` is the scheme B API (`puppet` or `puppet-ca`), '' in scheme A; `path` the decoded path, for messages.
    """

    indirection: str
    verb: Verb
    key: str
    environment: str | None
    dialect: Dialect
    method: str
    path: str
    prefix: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)

    def with_form(self, body: bytes) -> IndirectorCall:
        """
        Return this call with the parameters of a form body added; those in both count as repeated.

        Raises:
            BadRequest: the form names another environment than the query. Agents of 4 and later name it in both. In scheme A only
                the path's counts.
        """
        form = parameters(body.decode("ascii", "surrogateescape"))
        wanted = single("environment", form.pop("environment", None))
        environment = self.environment
        if self.prefix and wanted is not None:
            environment = valid_environment(wanted)
            if self.environment not in (None, environment):
                # Authorization has looked at one of them already.
                raise BadRequest("The query and the form name different environments")
        options = dict(self.options)
        for name, value in form.items():
            options[name] = [*_listed(options[name]), *_listed(value)] if name in options else value
        return replace(self, environment=environment, options=options)


def is_scheme_b(raw_path: str) -> bool:
    """Return whether a path's first segment is one that can never be an environment of scheme A."""
    return raw_path.split("/", 2)[1:2] != [] and raw_path.split("/", 2)[1] in FIRST_SEGMENTS


def decode_path(text: str) -> str:
    """Return `text` percent-decoded once; raise BadName for broken escapes and for text that is not UTF-8."""
    try:
        decoded = percent.decode_valid_percent(text.encode("ascii"))
        if decoded is None:
            raise BadName(f"Not a valid percent escape in {quoted_for_log(text)}")
        return decoded.decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as err:
        raise BadName(f"Not UTF-8: {quoted_for_log(text)}") from err


def parameters(text: str) -> dict[str, Option]:
    """Return the parameters of a query or form; repeated ones become lists, in order."""
    options: dict[str, Option] = {}
    # Split at most so often, so that a body of separators takes no memory.
    pairs = [pair for pair in text.split("&", MAX_SEPARATORS) if pair]
    if len(pairs) > MAX_FIELDS or (pairs and pairs[-1].count("&")):
        raise BadRequest(f"More than {MAX_FIELDS} parameters")
    for pair in pairs:
        raw_name, _, raw_value = pair.partition("=")
        name, value = decode_path(raw_name.replace("+", " ")), decode_path(raw_value.replace("+", " "))
        # Rails' and Puppet's form of a repeated parameter.
        name = name.removesuffix("[]")
        before = options.get(name)
        if before is None:
            options[name] = value
        else:
            options[name] = [*([before] if isinstance(before, str) else before), value]
    return options


def single(name: str, value: Option | None) -> str | None:
    """Return the value of a parameter that must not be repeated; raise BadRequest when it is."""
    if value is None or isinstance(value, str):
        return value
    raise BadRequest(f"The parameter {name} appears more than once")


def _listed(value: Option) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def plurality(name: str) -> tuple[str, Literal["singular", "plural"]]:
    """Return the indirection a path segment names, and whether one or many are meant."""
    if name in _SINGULAR:
        return name, "singular"
    if name in _PLURAL:
        return name, "plural"
    for ending in ("_search", "s"):
        if name.endswith(ending):
            stem = name.removesuffix(ending)
            return (stem[:-1] if stem.endswith("statuse") else stem), "plural"
    return name, "singular"


def verb_for(method: str, name: str) -> tuple[str, Verb]:
    """Return the indirection and the verb; BadRequest in 3.8's words when there is none."""
    if method not in _KNOWN_METHODS:
        raise BadRequest(f"No support for http method {quoted_for_log(method)[1:-1]}")
    indirection, number = plurality(name)
    try:
        return indirection, METHODS[method, number]
    except KeyError:
        verb = plurality(indirection)[1]  # 3.x has cut the ending off by then, and looks again
        raise BadRequest(f"No support for plurality {verb} for {method} operations") from None


def parse(method: str, raw_path: str, raw_query: str = "") -> IndirectorCall:
    """
    Return the call of a request line.

    Args:
        raw_path: as sent, still escaped. raw_query: the part after `?`, may be ''.
    Raises:
        BadName, BadRequest: syntax, in the order and with the texts of the scheme. Whether environment, indirection
        and key exist is for the caller to check, in its scheme's order.
    """
    return _parse_b(method, raw_path, raw_query) if is_scheme_b(raw_path) else _parse_a(method, raw_path, raw_query)


def _parse_a(method: str, raw_path: str, raw_query: str) -> IndirectorCall:
    parts = raw_path.split("/", 3)
    environment = valid_environment(decode_path(parts[1]) if len(parts) > 1 else "")
    name = decode_path(parts[2]) if len(parts) > 2 else ""
    _check_name(name)
    indirection, verb = verb_for(method, name)
    key = decode_path(parts[3]) if len(parts) > 3 else ""
    options = parameters(raw_query)
    single("environment", options.pop("environment", None))  # the path's wins
    return IndirectorCall(
        indirection, verb, _collapsed(indirection, key), environment, LEGACY, method, decode_path(raw_path), options=options
    )


def _parse_b(method: str, raw_path: str, raw_query: str) -> IndirectorCall:
    parts = raw_path.split("/", 4)
    prefix = parts[1]
    name = decode_path(parts[3]) if len(parts) > 3 else ""
    _check_name(name)
    indirection, verb = verb_for(method, name)
    # Split before it is decoded, so that an escaped slash stays part of the key.
    key = decode_path(parts[4]) if len(parts) > 4 else ""
    options = parameters(raw_query)
    wanted = single("environment", options.pop("environment", None))
    environment = None if wanted is None else valid_environment(wanted)
    return IndirectorCall(
        indirection, verb, _collapsed(indirection, key), environment, MODERN, method, decode_path(raw_path), prefix, options
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadRequest(f"The indirection name must be purely alphanumeric, not {quoted_for_log(name)}")


def _collapsed(indirection: str, key: str) -> str:
    """Take a bucket key's original path, which loses its leading slash, as in the servers that collapse `//`."""
    # Agents append an absolute path behind a slash.
    return re.sub(r"/{2,}", "/", key) if indirection == "file_bucket_file" else key


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to send: `target` is path and query, `form` a body of parameters."""

    method: str
    target: str
    form: bytes | None = None


_HTTP: Mapping[Verb, str] = {"find": "GET", "search": "GET", "save": "PUT", "destroy": "DELETE", "head": "HEAD"}


def build(
    verb: Verb, indirection: Indirection[Model], request: Request[Model], dialect: Dialect, *, prefix: str = "puppet", post: bool = False
) -> Outgoing:
    """
    Return the request line (and form body) that asks a peer of `dialect` for this.

    Args:
        prefix: scheme B's API: `puppet`, `puppet-ca`.
        post: a find as POST in any case; otherwise only when the request line would be longer than MAX_GET.
    """
    name = indirection.search_name if verb == "search" else indirection.name
    key = quote(request.key, safe="/-_.~:@!$&'()*,=")
    options = dict(request.options)
    if dialect.wraps:
        path = f"/{quote(request.environment, safe='')}/{name}/{key}"
        fixed = ""
    else:
        path = f"/{'puppet-ca/v1' if prefix == 'puppet-ca' else 'puppet/v3'}/{name}/{key}"
        fixed = urlencode({"environment": request.environment})
        options = {"environment": request.environment, **options}
    query = urlencode(options, doseq=True, quote_via=quote, safe="")
    target = f"{path}?{query}" if query else path
    if verb == "find" and (post or len(f"GET {target} HTTP/1.1\r\n") > MAX_GET):
        return Outgoing("POST", f"{path}?{fixed}" if fixed else path, query.encode("ascii"))
    return Outgoing(_HTTP[verb], target)
