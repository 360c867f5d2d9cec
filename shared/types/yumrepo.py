"""`yumrepo`: a repository of yum or dnf. Source: resource layer reference 10.5."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from ..ral import ABSENT, Param, Property, Type, Value, ensurable
from ..ral.attributes import text_of
from .kinds.lines import breaks_line, one_line

_SCHEMES = frozenset(("file", "http", "https", "ftp"))
_BOOLEAN = re.compile(r"(true|false|0|1|no|yes)", re.IGNORECASE)


class YumrepoSetting(Property[str]):
    """One key of the repository's section; `absent` removes it."""

    def validate(self, resource: Type, value: Any) -> None:
        if text_of(value) == ABSENT:
            return
        if breaks_line(text_of(value)):
            raise ValueError(f"{self.name} cannot include newline")
        super().validate(resource, value)


def _matching(pattern: str, doc: str) -> YumrepoSetting:
    return YumrepoSetting(str, match=pattern, values=(Value(ABSENT),), doc=doc)


def _text(doc: str) -> YumrepoSetting:
    return YumrepoSetting(str, doc=doc)


class YumrepoBoolean(YumrepoSetting):
    def validate(self, resource: Type, value: Any) -> None:
        text = text_of(value)
        if text != ABSENT and not _BOOLEAN.fullmatch(text):
            raise ValueError(f'Invalid value "{text}". Valid values are absent. Valid values match /^(true|false|0|1|no|yes)$/.')

    def munge(self, resource: Type, value: Any) -> Any:
        return ABSENT if text_of(value) == ABSENT else text_of(value).capitalize()


def _flag(doc: str) -> YumrepoBoolean:
    return YumrepoBoolean(str, doc=doc)


class YumrepoUrls(YumrepoSetting):
    """URLs, separated by blanks when `many_urls`; further words are those that yum understands."""

    many_urls = False
    words: tuple[str, ...] = ()

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        joined = " ".join(text_of(value) for value in raw) if isinstance(raw, list | tuple) and self.many_urls else raw
        return super().accept(resource, joined)

    def validate(self, resource: Type, value: Any) -> None:
        super().validate(resource, value)
        text = text_of(value)
        if text == ABSENT or text in self.words:
            return
        for url in text.split() if self.many_urls else [text]:
            parts = urlsplit(url)
            if parts.scheme not in _SCHEMES:
                raise ValueError(f"Must be a valid URL, not {url}")


class YumrepoUrlList(YumrepoUrls):
    many_urls = True


class YumrepoProxyUrl(YumrepoUrls):
    words = ("", "_none_")


def _name(value: Any) -> None:
    text = text_of(value)
    if not re.fullmatch(r"[^\[\]/\0\r\n]+", text) or text in (".", ".."):
        raise ValueError(f"Invalid repository name {text!r}")


class Yumrepo(Type, name="yumrepo"):
    """A section of the files that yum and dnf read; other keys and comments stay as they are."""

    ensure = ensurable()
    descr = _text("The repository's name, for people.")
    mirrorlist = YumrepoUrls(str, doc="URL of a list of mirrors.")
    baseurl = YumrepoUrlList(str, doc="URLs of the repository.")
    enabled = _flag("Whether it is used.")
    gpgcheck = _flag("Whether packages' signatures are checked.")
    payload_gpgcheck = _flag("Whether payloads' signatures are checked.")
    repo_gpgcheck = _flag("Whether the metadata's signature is checked.")
    gpgkey = YumrepoUrlList(str, doc="URLs of the keys.")
    mirrorlist_expire = _matching(r"[0-9]+", "Seconds for which the list of mirrors is cached.")
    include = YumrepoUrls(str, doc="URL of further configuration.")
    exclude = _text("Packages to exclude.")
    gpgcakey = YumrepoUrls(str, doc="URL of the CA's key.")
    includepkgs = _text("The only packages to include.")
    enablegroups = _flag("Whether package groups are used.")
    failovermethod = _matching(r"roundrobin|priority", "How mirrors are chosen.")
    keepalive = _flag("Whether to use persistent connections.")
    retries = _matching(r"[0-9]+", "Times that a download is tried.")
    http_caching = _matching(r"packages|all|none", "What HTTP caches may store.")
    timeout = _matching(r"\d+", "Seconds to connect.")
    metadata_expire = _matching(r"([0-9]+[dhm]?|never)", "How long metadata is cached.")
    protect = _flag("Whether it is protected from others.")
    priority = _matching(r"-?\d+", "1 comes first.")
    minrate = _matching(r"\d+[kMG]?", "The least speed.")
    throttle = _matching(r"\d+[kMG%]?", "The most speed.")
    bandwidth = _matching(r"\d+[kMG]?", "The most speed of all.")
    cost = _matching(r"\d+", "What using it costs.")
    proxy = YumrepoProxyUrl(str, doc="URL of a proxy, or _none_.")
    proxy_username = _text("User at the proxy.")
    proxy_password = YumrepoSetting(str, sensitive=True, doc="Password at the proxy.")
    s3_enabled = _flag("Whether it is in S3.")
    sslcacert = _text("The CA's certificates.")
    sslverify = _flag("Whether certificates are verified.")
    sslclientcert = _text("Our certificate.")
    sslclientkey = _text("Our key.")
    metalink = YumrepoUrls(str, doc="URL of a metalink.")
    skip_if_unavailable = _flag("Whether it may be missing.")
    assumeyes = _flag("Whether questions are answered by yes.")
    deltarpm_percentage = _matching(r"\d+", "From which size on deltas are used.")
    deltarpm_metadata_percentage = _matching(r"\d+", "The same for metadata.")
    username = _text("User at the repository.")
    password = YumrepoSetting(str, sensitive=True, doc="Password at the repository.")
    module_hotfixes = _flag("Whether it has hotfixes for modules.")

    name = Param(str, namevar=True, check=_name, doc="The repository's id.")
    target = Param(str, check=one_line("Target"), doc="Not used: the section stays where it is.")

    @classmethod
    def section_keys(cls) -> dict[str, str]:
        """Return the key of the section for each property."""
        return {p.name: "name" if p.name == "descr" else p.name for p in cls.declaration.properties if p.name != "ensure"}
