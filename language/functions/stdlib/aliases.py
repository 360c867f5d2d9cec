"""
The type aliases of stdlib, by lower-case name: `(name, definition)`.

A module's own `types/*.pp`, those of the real stdlib too, come before these.
"""

from __future__ import annotations

from typing import Final

_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_V4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_V4_MASK: Final = r"(?:3[0-2]|[12]?[0-9])"
_V6_MASK: Final = r"(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])"
_GROUP: Final = r"[0-9A-Fa-f]{1,4}"
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PARTS: Final = r"[^\n/\0]+(?:/[^\n/\0]+)*/?"
_INTEGER: Final = r"Pattern[/^-?(?:0|[1-9]\d*)$/]"
_NUMBER: Final = r"Pattern[/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE]-?\d+)?$/]"


def _anchored(*bodies: str) -> str:
    escaped = (body.replace("/", "\\/") for body in bodies)
    return "Pattern[" + ", ".join(rf"/\A(?:{body})\z/" for body in escaped) + "]"


def _full() -> str:
    return rf"{_GROUP}(?::{_GROUP}){{7}}"


def _compressed() -> str:
    """Return the pattern of addresses in which `::` replaces groups: n groups before it, at most 7 - n after it."""
    forms = [rf":(?::|(?::{_GROUP}){{1,7}})"]
    forms += [rf"(?:{_GROUP}:){{{front}}}(?::|(?::{_GROUP}){{1,{7 - front}}})" for front in range(1, 7)]
    return "|".join([*forms, rf"(?:{_GROUP}:){{7}}:"])


def _mixed() -> str:
    """Return the pattern of addresses with the last two groups as an IPv4 address."""
    forms = [rf"(?:{_GROUP}:){{6}}{_V4}", rf"(?:{_GROUP}:){{5}}:{_V4}"]
    forms += [rf"(?:{_GROUP}:){{{front}}}(?::{_GROUP}){{0,{5 - front}}}:{_V4}" for front in range(4, 0, -1)]
    return "|".join([*forms, rf":(?::{_GROUP}){{0,5}}:{_V4}"])


def _with_mask(body: str) -> str:
    return rf"(?:{body})(?:/{_V6_MASK})?"


def _enum(text: str) -> str:
    return "Enum[" + ", ".join(f"'{word}'" for word in text.split()) + "]"


_SYMBOLIC_MODE: Final = r"(?:[ugoa]*(?:[-+=](?:[rwxXst]*|[ugo]))+|[-+=][0-7]+)"
_WINDOWS: Final = r"[a-zA-Z]:[\\/]|[\\/][\\/][^\\/]+[\\/][^\\/]+|[\\/][\\/]\?[\\/][^\\/]+"
_EMAIL_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_EMAIL: Final = _anchored(rf"[a-zA-Z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{_EMAIL_LABEL}(?:\.{_EMAIL_LABEL})*")

_DECLARED: Final = (
    # paths and files
    ("Stdlib::Unixpath", _anchored(r"/(?:[^\n/\0][^\n\0]*)?")),
    ("Stdlib::Windowspath", _anchored(rf"(?:{_WINDOWS}).*")),
    ("Stdlib::Absolutepath", "Variant[Stdlib::Windowspath, Stdlib::Unixpath]"),
    ("Stdlib::Filemode", _anchored(rf"[0-7]{{1,4}}|{_SYMBOLIC_MODE}(?:,{_SYMBOLIC_MODE})*")),
    (
        "Stdlib::Filesource",
        "Variant[Stdlib::Absolutepath, Stdlib::HTTPUrl, "
        + _anchored(rf"file:///{_PARTS}", rf"puppet://(?:[\w-]+(?:\.[\w-]+)*\.?)?/{_PARTS}")
        + "]",
    ),
    # ensure
    ("Stdlib::Ensure::Service", "Enum['stopped', 'running']"),
    ("Stdlib::Ensure::Package", "Variant[Enum['present', 'absent', 'purged', 'disabled', 'installed', 'latest'], String[1]]"),
    ("Stdlib::Ensure::File", "Enum['present', 'file', 'directory', 'link', 'absent']"),
    ("Stdlib::Ensure::File::File", "Enum['file', 'absent']"),
    ("Stdlib::Ensure::File::Directory", "Enum['directory', 'absent']"),
    ("Stdlib::Ensure::File::Link", "Enum['link', 'absent']"),
    # names and addresses
    ("Stdlib::Fqdn", _anchored(rf"(?:{_LABEL}\.)*{_LABEL}")),
    ("Stdlib::Dns::Zone", _anchored(rf"(?:{_LABEL}\.)+|\.")),
    ("Stdlib::Host", "Variant[Stdlib::Fqdn, Stdlib::IP::Address::Nosubnet]"),
    ("Stdlib::Email", _EMAIL),
    ("Stdlib::MAC", _anchored(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", r"(?:[0-9A-Fa-f]{2}[:-]){19}[0-9A-Fa-f]{2}")),
    ("Stdlib::IP::Address", "Variant[Stdlib::IP::Address::V4, Stdlib::IP::Address::V6]"),
    ("Stdlib::IP::Address::CIDR", "Variant[Stdlib::IP::Address::V4::CIDR, Stdlib::IP::Address::V6::CIDR]"),
    ("Stdlib::IP::Address::Nosubnet", "Variant[Stdlib::IP::Address::V4::Nosubnet, Stdlib::IP::Address::V6::Nosubnet]"),
    ("Stdlib::IP::Address::V4", "Variant[Stdlib::IP::Address::V4::CIDR, Stdlib::IP::Address::V4::Nosubnet]"),
    ("Stdlib::IP::Address::V4::CIDR", _anchored(rf"{_V4}/{_V4_MASK}")),
    ("Stdlib::IP::Address::V4::Nosubnet", _anchored(_V4)),
    (
        "Stdlib::IP::Address::V6",
        "Variant[Stdlib::IP::Address::V6::Full, Stdlib::IP::Address::V6::Compressed, Stdlib::IP::Address::V6::Alternative, "
        "Stdlib::IP::Address::V6::Nosubnet]",
    ),
    ("Stdlib::IP::Address::V6::Full", _anchored(_with_mask(_full()))),
    ("Stdlib::IP::Address::V6::Compressed", _anchored(_with_mask(_compressed()))),
    ("Stdlib::IP::Address::V6::Alternative", _anchored(_with_mask(_mixed()))),
    ("Stdlib::IP::Address::V6::CIDR", _anchored(rf"(?:{_full()}|{_compressed()}|{_mixed()})(?:%.+)?/{_V6_MASK}")),
    (
        "Stdlib::IP::Address::V6::Nosubnet",
        "Variant[Stdlib::IP::Address::V6::Nosubnet::Full, Stdlib::IP::Address::V6::Nosubnet::Compressed, "
        "Stdlib::IP::Address::V6::Nosubnet::Alternative]",
    ),
    ("Stdlib::IP::Address::V6::Nosubnet::Full", _anchored(_full())),
    ("Stdlib::IP::Address::V6::Nosubnet::Compressed", _anchored(_compressed())),
    ("Stdlib::IP::Address::V6::Nosubnet::Alternative", _anchored(_mixed())),
    # ports
    ("Stdlib::Port", "Integer[0, 65535]"),
    ("Stdlib::Port::Privileged", "Integer[1, 1023]"),
    ("Stdlib::Port::Unprivileged", "Integer[1024, 65535]"),
    ("Stdlib::Port::User", "Integer[1024, 49151]"),
    ("Stdlib::Port::Registered", "Stdlib::Port::User"),
    ("Stdlib::Port::Dynamic", "Integer[49152, 65535]"),
    ("Stdlib::Port::Ephemeral", "Stdlib::Port::Dynamic"),
    # the web
    ("Stdlib::HTTPUrl", r"Pattern[/(?i:\Ahttps?:\/\/.*\z)/]"),
    ("Stdlib::HTTPSUrl", r"Pattern[/(?i:\Ahttps:\/\/.*\z)/]"),
    ("Stdlib::HttpStatus", "Integer[100, 599]"),
    ("Stdlib::Http::Status", "Integer[100, 599]"),
    (
        "Stdlib::Http::Method",
        _enum(
            "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL "
            "MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT REBIND REPORT SEARCH TRACE UNBIND "
            "UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL"
        ),
    ),
    ("Stdlib::ObjectStore", "Variant[Stdlib::ObjectStore::GSUri, Stdlib::ObjectStore::S3Uri]"),
    ("Stdlib::ObjectStore::GSUri", _anchored("gs://.*")),
    ("Stdlib::ObjectStore::S3Uri", _anchored("s3://.*")),
    # texts
    ("Stdlib::Base32", _anchored(r"[a-z2-7]+={0,6}", r"[A-Z2-7]+={0,6}")),
    ("Stdlib::Base64", _anchored(r"[a-zA-Z0-9/+]+={0,2}")),
    ("Stdlib::Datasize", r"Pattern[/^\d+(?i:[kmgt]b?|b)$/]"),
    ("Stdlib::Yes_no", r"Pattern[/\A(?i:(yes|no))\z/]"),
    (
        "Stdlib::Syslogfacility",
        _enum(
            "kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp security console solaris-cron "
            "local0 local1 local2 local3 local4 local5 local6 local7"
        ),
    ),
    ("Stdlib::CreateResources", "Hash[String[1], Hash[String[1], Any]]"),
    # stdlib before 9, for validate_legacy
    ("Stdlib::Compat::Absolute_path", rf"Variant[Pattern[/^(?:{_WINDOWS.replace('/', chr(92) + '/')})/], Pattern[/^\//]]"),
    ("Stdlib::Compat::Array", "Array[Any]"),
    ("Stdlib::Compat::Bool", "Boolean"),
    ("Stdlib::Compat::Float", r"Variant[Float, Pattern[/^-?(?:0|[1-9]\d*)\.\d+(?:[eE]-?\d+)?$/]]"),
    ("Stdlib::Compat::Hash", "Hash[Any, Any]"),
    ("Stdlib::Compat::Integer", f"Variant[Integer, {_INTEGER}, Array[Variant[Integer, {_INTEGER}]]]"),
    ("Stdlib::Compat::Ip_address", "Variant[Stdlib::Compat::Ipv4, Stdlib::Compat::Ipv6]"),
    ("Stdlib::Compat::Ipv4", rf"Pattern[/^{_V4}(?:\/(?:{_V4}|[0-9]+))?$/]"),
    ("Stdlib::Compat::Ipv6", rf"Pattern[/\s*(?:{_full()}|{_compressed()}|{_mixed()})(?:%.+)?\s*$/]"),
    ("Stdlib::Compat::Numeric", f"Variant[Numeric, {_NUMBER}, Array[Variant[Numeric, {_NUMBER}]]]"),
    ("Stdlib::Compat::Re", "String"),
    ("Stdlib::Compat::String", "Optional[String]"),
)

ALIASES: Final = {name.lower(): (name, definition) for name, definition in _DECLARED}
