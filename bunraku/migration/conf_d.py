"""The settings of puppetserver's conf.d, and what becomes of each: a setting of puppet.conf, or a reason why none is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from master.checks.findings import Finding, Severity
from shared.settings import setting_text

AREA: Final = "configuration"


@dataclass(frozen=True, slots=True)
class Fate:
    """
    What becomes of a setting.

    Attributes:
        setting: ours with the same meaning; '' when there is none, and then `why` says why.
        severity: of a value that has no effect here.
    """

    setting: str = ""
    why: str = ""
    severity: Severity = "notice"


_JRUBY = Fate(why="There is no JRuby: Ruby code runs in the system's ruby, whose gems count.")
_READ = Fate(why="`puppet migrate` reads it to find the server's files.")
_LIMITS = Fate(why="The master's settings max_queued_requests and compile_queue limit waiting requests; agents get a random Retry-After.")
_LOGS = Fate(why="The master logs to syslog or standard error, which systemd collects.")

FATES: Mapping[str, Fate] = {
    "authorization.allow-header-cert-info": Fate("allow_header_cert_info"),
    "authorization": Fate(why="The rules are copied to auth.conf in confdir."),
    "certificate-authority.allow-authorization-extensions": Fate("allow_authorization_extensions"),
    "certificate-authority.allow-auto-renewal": Fate("allow_auto_renewal"),
    "certificate-authority.allow-subject-alt-names": Fate("allow_subject_alt_names"),
    "certificate-authority.auto-renewal-cert-ttl": Fate("auto_renewal_cert_ttl"),
    "certificate-authority.certificate-status": Fate(why="Rules for it are those of auth.conf.", severity="warning"),
    "certificate-authority.enable-infra-crl": Fate(why="Agents get the whole revocation list.", severity="warning"),
    "dropsonde": Fate(why="Nothing is sent to anybody."),
    "global": _LOGS,
    "http-client": Fate(why="Requests of the master to others use their own limits.", severity="warning"),
    "jruby-puppet.environment-class-cache-enabled": Fate(why="Listings of classes always have an ETag."),
    "jruby-puppet.environment-vars": Fate(why="Functions in Ruby get a clean environment.", severity="warning"),
    "jruby-puppet.master-code-dir": _READ,
    "jruby-puppet.master-conf-dir": _READ,
    "jruby-puppet.master-log-dir": _LOGS,
    "jruby-puppet.master-run-dir": _READ,
    "jruby-puppet.master-var-dir": _READ,
    "jruby-puppet.max-active-instances": Fate("compile_workers"),
    "jruby-puppet.max-queued-requests": _LIMITS,
    "jruby-puppet.max-requests-per-instance": Fate(why="A compiling process is replaced after compile_jobs catalogs."),
    "jruby-puppet.server-code-dir": _READ,
    "jruby-puppet.server-conf-dir": _READ,
    "jruby-puppet.server-log-dir": _LOGS,
    "jruby-puppet.server-run-dir": _READ,
    "jruby-puppet.server-var-dir": _READ,
    "jruby-puppet": _JRUBY,
    "metrics": Fate(why="Set metrics_port for Prometheus; there is no JMX and no Graphite."),
    "nrepl": Fate(why="There is no JVM to debug."),
    "product": Fate(why="Nothing asks for updates."),
    "profiler": Fate(why="`puppet catalog compile NODE --profile` shows the slowest lines."),
    "puppet-admin": Fate(why="Rules for /puppet-admin-api are those of auth.conf.", severity="warning"),
    "versioned-code.code-content-command": Fate("code_content_command"),
    "versioned-code.code-id-command": Fate("code_id_command"),
    "web-router-service": Fate(why="The master answers at Puppet's usual paths only."),
    "webserver.access-log-config": _LOGS,
    "webserver.cipher-suites": Fate(why="TLS 1.2 and 1.3 with the strong ciphers of this system's OpenSSL.", severity="warning"),
    "webserver.client-auth": Fate(why="A client without a certificate reaches only what auth.conf allows to everybody."),
    "webserver.host": Fate(why="The master does not listen without TLS.", severity="warning"),
    "webserver.port": Fate(why="The master does not listen without TLS.", severity="warning"),
    "webserver.ssl-ca-cert": Fate("localcacert"),
    "webserver.ssl-cert": Fate("hostcert"),
    "webserver.ssl-cert-chain": Fate(why="Append the chain to the file of hostcert.", severity="warning"),
    "webserver.ssl-crl-path": Fate("hostcrl"),
    "webserver.ssl-host": Fate("bindaddress"),
    "webserver.ssl-key": Fate("hostprivkey"),
    "webserver.ssl-port": Fate("masterport"),
    "webserver.ssl-protocols": Fate(why="TLS 1.2 and 1.3.", severity="warning"),
    "webserver": Fate(why="It is a setting of the JVM's web server."),
}


def fate_of(path: str) -> Fate | None:
    """Return what becomes of the setting at a path, or of those above it; None for an unknown one."""
    words = path.split(".")
    return next((FATES[name] for end in range(len(words), 0, -1) if (name := ".".join(words[:end])) in FATES), None)


def settings_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of ours that have the same meaning, as texts."""
    found = {fate.setting: setting_text(value) for path, value in values.items() if (fate := fate_of(path)) is not None and fate.setting}
    return dict(sorted(found.items()))


def findings_of(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the settings without effect here: those that should be looked at with the reason, the others together."""
    harmless: list[str] = []
    for path, value in values.items():
        fate = fate_of(path)
        if fate is None:
            yield Finding(AREA, "warning", f"conf.d: {path} = {_text(value)} is not known here")
        elif not fate.setting and fate.severity == "warning":
            yield Finding(AREA, "warning", f"conf.d: {path} = {_text(value)} has no effect here", fate.why)
        elif not fate.setting and fate is not _READ:
            harmless.append(path)
    if harmless:
        files = "docs/migrating.md has the reason for each."
        yield Finding(AREA, "notice", f"conf.d: {len(harmless)} settings have no meaning here, as {', '.join(harmless[:3])}", files)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else setting_text(value)
