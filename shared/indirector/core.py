"""
The indirector: one way to find or store an instance, wherever it is stored.

An Indirection names a kind of data and its Model. A Terminus is a place where instances live. A Binding joins an indirection with
a terminus and, if wanted, a cache; `await node.find("web1")` on a binding is the same call whether the terminus is a file, a
program or a master on the network. Source: protocol reference 1.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from ..client import Client
from ..clock import utc_now
from ..errors import BadData, BadRequest, Denied, Unavailable, Unsupported
from ..names import quoted_for_log
from ..wire.deflated import DeflatedText
from ..wire.dialects import Dialect
from ..wire.formats import Format

log = logging.getLogger("puppet.indirector")

Option = str | list[str]


class Model(BaseModel):
    """An instance of an indirection. Frozen; unknown fields of a peer are dropped."""

    # defer_build: a command that uses two models should not pay for building all of them.
    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True, defer_build=True)

    takes_name_of_key: ClassVar[bool] = False  # an instance to be saved that has no name is about the key it is sent to

    name: str
    expiration: datetime | None = None  # UTC; None: never

    def to_data(self, dialect: Dialect) -> Any:
        """Return plain data for json, pson and yaml; override where a dialect differs."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_form(self, dialect: Dialect, format: Format) -> Any:
        """Return plain data for one format; override it where formats differ in their expressiveness."""
        return self.to_data(dialect)

    def encoded(self, dialect: Dialect, format: Format) -> bytes | DeflatedText | None:
        """Return the body itself, when it was made elsewhere already; None: make it of `to_form`."""
        return None

    def digest(self) -> bytes | None:
        """Return a digest that is equal for instances with the same content; None if computing it would take as long as writing one."""
        return None

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return the instance in plain data from a peer or a file; BadData names the first field that is wrong."""
        if not isinstance(data, dict):
            raise BadData(f"Expected an object to make a {cls.__name__} of")
        try:
            return cls.model_validate(data)
        except ValidationError as err:
            raise cls.fault(err) from err

    @classmethod
    def fault(cls, err: ValidationError, *place: str | int) -> BadData:
        """Return the first error, of data that were found at `place`."""
        # Without the input, which may be a secret of the peer and goes into the log.
        first = err.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in (*place, *first["loc"]))
        return BadData(f"Not a {cls.__name__}: {first['msg']} at {quoted_for_log(where)}")

    def to_bytes(self, dialect: Dialect) -> bytes:
        """Return the form of the raw formats (`s`, `raw`, `binary`)."""
        raise Unsupported(f"{type(self).__name__} has no raw form")

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        raise Unsupported(f"{cls.__name__} cannot be read from raw bytes")


M = TypeVar("M", bound=Model)


class Stream(Model):
    """A model whose raw form is too large to hold: its bytes come as chunks, once. `size` in bytes, None when unknown."""

    size: int | None = None
    chunks: Callable[[], AsyncIterator[bytes]]

    @classmethod
    def from_chunks(cls, name: str, chunks: Callable[[], AsyncIterator[bytes]], size: int | None) -> Self:
        return cls(name=name, chunks=chunks, size=size)


@dataclass(frozen=True, slots=True)
class Target:
    """The server part of a key that is a URI; `host` is '' when the default server is meant."""

    protocol: str
    host: str = ""
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Request(Generic[M]):
    """One call, local or from a peer."""

    key: str
    environment: str = "production"
    body: M | None = None  # save only
    client: Client | None = None  # None: a local call
    options: Mapping[str, Option] = field(default_factory=dict)
    target: Target | None = None  # set when the key was a URI
    dialect: Dialect | None = None  # what the remote caller speaks; None: a local call
    ignore_cache: bool = False
    ignore_terminus: bool = False
    ignore_cache_save: bool = False

    @property
    def instance(self) -> M:
        """The instance to save; raise BadRequest when the request has none."""
        if self.body is None:
            raise BadRequest(f"Nothing to save for {quoted_for_log(self.key)}")
        return self.body

    def option(self, name: str, default: str = "") -> str:
        """Return a single option's text; the last one when it came several times."""
        value = self.options.get(name, default)
        return value if isinstance(value, str) else (value[-1] if value else default)

    def many(self, name: str) -> list[str]:
        """Return all values of an option."""
        value = self.options.get(name, [])
        return [value] if isinstance(value, str) else list(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a true/false option; BadRequest for anything else."""
        text = self.option(name)
        if text == "":
            return default
        # As Puppet reads it; other words must not silently mean false.
        if text not in ("true", "false"):
            raise BadRequest(f"The option {name} must be true or false, not {quoted_for_log(text)}")
        return text == "true"

    def number(self, name: str, *, least: int = 0, most: int = 2**31) -> int | None:
        """Return a whole number, or None when the option is missing; BadRequest outside of least..most."""
        text = self.option(name)
        if text == "":
            return None
        digits = text[1:] if text.startswith("-") else text
        # The length is checked before int(), which takes quadratic time for long digits.
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or not least <= int(text) <= most:
            raise BadRequest(f"The option {name} must be a number from {least} to {most}, not {quoted_for_log(text)}")
        return int(text)


def request_for(key: str, **parameters: Any) -> Request[Any]:
    """
    Return a local request. A key that looks like a URI (`puppet://host/mount/x`, `file:///x`, `https://…`) is taken apart.

    Parameters that are fields of Request fill them; all others become options.
    """
    known = {name: parameters.pop(name) for name in list(parameters) if name in Request.__dataclass_fields__}
    options = {name: _option(name, value) for name, value in parameters.items() if value is not None}
    target = None
    if "://" in key or key.startswith("file:"):
        parts = urlsplit(key)
        target = Target(parts.scheme, parts.hostname or "", parts.port)
        if parts.scheme == "puppet":
            key = unquote(parts.path.lstrip("/"))
        elif parts.scheme == "file":
            key = unquote(parts.path)
    return Request(key=key, options=options | dict(known.pop("options", {})), **({"target": target} | known))


def _option(name: str, value: Any) -> Option:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    if isinstance(value, Sequence):
        return [str(item) for item in value]
    raise BadRequest(f"The option {name} cannot be a {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Indirection(Generic[M]):
    """
    A kind of data, with the same declaration in every process.

    `plural` is the path segment of a search (the naive plural is accepted too); `formats` name the wire forms, in no
    order; `document_type` is the wrapper of 3.x; `options` are the parameters that a remote caller may pass (`x.*`: any
    that begins with `x.`), others are dropped; `repeatable` are those of them that may stand several times; `limit` is the
    setting that bounds a body; `expires`: find sets an expiration.
    """

    name: str
    model: type[M]
    formats: tuple[str, ...] = ("json", "pson", "yaml", "b64_zlib_yaml")
    plural: str = ""
    document_type: str = ""
    document_metadata: bool = True
    ruby_class: str = ""
    options: frozenset[str] = frozenset()
    repeatable: frozenset[str] = frozenset()
    limit: str = "max_request_body"
    remote: bool = True
    expires: bool = False
    needs_environment: bool = True
    doc: str = ""

    @property
    def search_name(self) -> str:
        """The path segment for a search that clients of all versions send."""
        return self.plural or self.name + "s"

    def allowed(self, options: Mapping[str, Option]) -> dict[str, Option]:
        """Return the `options` that a remote caller may pass; raise BadRequest when one is repeated although it must not be."""
        prefixes = tuple(name[:-1] for name in self.options if name.endswith("*"))
        # Unknown options are dropped: future agents may send more than we know.
        known = {k: v for k, v in options.items() if k in self.options or (prefixes and k.startswith(prefixes))}
        for name, value in known.items():
            if not isinstance(value, str) and name not in self.repeatable:
                raise BadRequest(f"The parameter {quoted_for_log(name)[1:-1]} appears more than once")
        return known


class Terminus(Generic[M]):
    """A place where instances live. Override the verbs it can do; the others raise Unsupported."""

    async def find(self, request: Request[M]) -> M | None:
        """Return the instance, or None when it is not there."""
        raise Unsupported(f"{type(self).__name__} cannot find")

    async def search(self, request: Request[M]) -> list[M] | None:
        """Return all matching instances, or None when the searched place does not exist."""
        raise Unsupported(f"{type(self).__name__} cannot search")

    async def save(self, request: Request[M]) -> object:
        """Store `request.instance`; the result is plain data for a remote caller."""
        raise Unsupported(f"{type(self).__name__} cannot save")

    async def destroy(self, request: Request[M]) -> object:
        """Remove the instance; the result is plain data for a remote caller."""
        raise Unsupported(f"{type(self).__name__} cannot destroy")

    async def head(self, request: Request[M]) -> bool:
        """Return whether it is there."""
        return await self.find(request) is not None

    def filter(self, instance: M, request: Request[M]) -> M:
        """Return an instance as the caller of find gets it; the cache holds the unfiltered one."""
        return instance

    def authorized(self, verb: str, request: Request[M]) -> bool:
        """Return a terminus' own decision about a remote caller, after the rules; the file server's mounts use it."""
        return True


@dataclass(eq=False, repr=False)
class Binding(Generic[M]):
    """An indirection joined with the terminus that answers and, if wanted, a cache."""

    indirection: Indirection[M]
    terminus: Terminus[M]
    _: KW_ONLY
    cache: Terminus[M] | None = None
    ttl: timedelta = timedelta(minutes=30)
    now: Callable[[], datetime] = utc_now

    async def find(self, key: str | Request[M], **parameters: Any) -> M | None:
        """
        Return the instance with that key, or None.

        It is a fresh one from the cache, or that of the terminus, which is then cached. A failing cache is a miss, and an instance that
        cannot be cached is returned all the same; both are logged.
        """
        request = self._request(key, "find", parameters)
        if self.cache and not request.ignore_cache:
            cached = await self._cached(request)
            if cached is not None:
                # The cache holds the whole instance; what this caller may see is decided each time.
                return self.terminus.filter(cached, request)
        if request.ignore_terminus:
            return None
        instance = await self.terminus.find(request)
        if instance is None:
            return None
        instance = self._expiring(instance)
        if self.cache and not request.ignore_cache_save:
            log.info("Caching %s for %s", self.indirection.name, request.key)
            await self._save_to_cache(self.cache, replace(request, body=instance))
        return self.terminus.filter(instance, request)

    async def _save_to_cache(self, cache: Terminus[M], request: Request[M]) -> None:
        """Save an instance in the cache; that this cannot be done is only logged."""
        try:
            await cache.save(request)
        except OSError as err:
            log.error("Could not cache %s for %s: %s", self.indirection.name, request.key, err)
        except Unavailable as err:  # with a time to come back; what is away says so in the log itself
            log.info("Could not cache %s for %s: %s", self.indirection.name, request.key, err.message)

    async def search(self, key: str | Request[M], **parameters: Any) -> list[M] | None:
        """Return all matching instances, never from the cache; None when the searched place does not exist."""
        request = self._request(key, "search", parameters)
        instances = await self.terminus.search(request)
        return None if instances is None else [self._expiring(instance) for instance in instances]

    async def save(self, instance: M | Request[M], key: str | None = None, **parameters: Any) -> object:
        """Store an instance, then cache it; return the terminus' result."""
        if isinstance(instance, Request):
            request = self._request(instance, "save", parameters)
        else:
            request = self._request(key if key is not None else instance.name, "save", {**parameters, "body": instance})
        # The terminus first: the cache must never hold what was not stored.
        result = None if request.ignore_terminus else await self.terminus.save(request)
        if self.cache and not request.ignore_cache_save:
            await self.cache.save(request)
        return result

    async def destroy(self, key: str | Request[M], **parameters: Any) -> object:
        """Remove an instance, also from the cache."""
        request = self._request(key, "destroy", parameters)
        result = await self.terminus.destroy(request)
        # A cache may refuse to destroy an instance that it does not have.
        if self.cache and await self.cache.find(request) is not None:
            await self.cache.destroy(request)
        return result

    async def head(self, key: str | Request[M], **parameters: Any) -> bool:
        """Return whether there is such an instance."""
        request = self._request(key, "head", parameters)
        if self.cache and not request.ignore_cache and await self._cached(request) is not None:
            return True
        return await self.terminus.head(request)

    async def expire(self, key: str | Request[M], **parameters: Any) -> None:
        """Make the cached copy stale, if there is one."""
        if self.cache is None:
            return
        request = self._request(key, "expire", parameters)
        cached = await self._cached(request)
        if cached is not None:
            log.info("Expiring the %s cache of %s", self.indirection.name, request.key)
            # As in Puppet, the instance is marked and not removed.
            stale = cached.model_copy(update={"expiration": self.now() - timedelta(seconds=60)})
            await self.cache.save(replace(request, body=stale))

    def _request(self, key: str | Request[M], verb: str, parameters: dict[str, Any]) -> Request[M]:
        request: Request[M] = key if isinstance(key, Request) else request_for(key, **parameters)
        if request.body is not None and not request.body.name and request.body.takes_name_of_key:
            request = replace(request, body=request.body.model_copy(update={"name": request.key}))
        # The rule was checked for the key, so that the body must not be about another node.
        if request.body is not None and request.body.name != request.key:
            raise BadRequest(f'Instance name "{request.body.name}" does not match requested key "{request.key}"')
        if request.client is not None and not self.terminus.authorized(verb, request):
            options = f" with {dict(request.options)}" if request.options else ""
            raise NotAuthorizedByTerminus(f"Not authorized to call {verb} on /{self.indirection.name}/{request.key}{options}")
        return request

    async def _cached(self, request: Request[M]) -> M | None:
        assert self.cache is not None
        try:
            cached = await self.cache.find(request)
        except Exception as err:  # noqa: BLE001  # a broken cache is a miss: what it should hold is fetched again
            log.error("Cached %s for %s failed: %s", self.indirection.name, request.key, err)
            return None
        if cached is not None and cached.expiration is not None and cached.expiration < self.now():
            log.info("Not using expired %s for %s from cache; expired at %s", self.indirection.name, request.key, cached.expiration)
            return None
        return cached

    def _expiring(self, instance: M) -> M:
        if not self.indirection.expires or instance.expiration is not None:
            return instance
        return instance.model_copy(update={"expiration": self.now() + self.ttl})


class NotAuthorizedByTerminus(Denied):
    """A file server mount's denial: HTTP makes a 400 (3.x) or 500 (4+) of it, as agents expect."""

    issue_kind = "RUNTIME_ERROR"


class Indirector(Mapping[str, "Binding[Any]"]):
    """The bindings of one process by the indirection's name. Attributes read well: `indirector.node.find("web1")`."""

    def __init__(self, bindings: Sequence[Binding[Any]]) -> None:
        self._bindings = {binding.indirection.name: binding for binding in bindings}

    def prepared(self) -> Indirector:
        """
        Build the models and return self. Otherwise the first use builds them, which threads might do at the same time.
        """
        # Built at the start, so that the first request of each kind is not slow.
        for binding in self._bindings.values():
            binding.indirection.model.model_rebuild()
        return self

    def __getitem__(self, name: str) -> Binding[Any]:
        return self._bindings[name]

    def __iter__(self) -> Any:
        return iter(self._bindings)

    def __len__(self) -> int:
        return len(self._bindings)

    def __getattr__(self, name: str) -> Binding[Any]:
        try:
            return self.__dict__["_bindings"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(name) from None
