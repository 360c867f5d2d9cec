"""Object identifiers of Puppet's certificate extensions, by number and by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509

from shared.errors import ConfigError
from shared.names import quoted_for_log

from .files.sitefiles import yaml_map

PUPPET_ARC = "1.3.6.1.4.1.34380.1"
REGISTERED_ARC = f"{PUPPET_ARC}.1"


AUTHORIZATION_ARC = f"{PUPPET_ARC}.3"

CLI_AUTH = f"{AUTHORIZATION_ARC}.39"
AUTO_RENEW = f"{AUTHORIZATION_ARC}.2"  # an attribute of a request, from Puppet 8 on
NS_COMMENT = "2.16.840.1.113730.1.13"
SUBJECT_ALT_NAME = "2.5.29.17"
EXTENSION_REQUEST = "1.2.840.113549.1.9.14"
MS_EXTENSION_REQUEST = "1.3.6.1.4.1.311.2.1.14"
CHALLENGE_PASSWORD = "1.2.840.113549.1.9.7"  # noqa: S105 - the OID of that name

# fmt: off
_REGISTERED = (
    "pp_uuid", "pp_instance_id", "pp_image_name", "pp_preshared_key", "pp_cost_center", "pp_product", "pp_project",
    "pp_application", "pp_service", "pp_employee", "pp_created_by", "pp_environment", "pp_role", "pp_software_version",
    "pp_department", "pp_cluster", "pp_provisioner", "pp_region", "pp_datacenter", "pp_zone", "pp_network",
    "pp_securitypolicy", "pp_cloudplatform", "pp_apptier", "pp_hostname", "pp_owner",
)
# fmt: on

SHORT_NAMES: Mapping[str, str] = {
    **{f"{REGISTERED_ARC}.{number}": name for number, name in enumerate(_REGISTERED, 1)},
    f"{AUTHORIZATION_ARC}.1": "pp_authorization",
    AUTO_RENEW: "pp_auth_auto_renew",
    f"{AUTHORIZATION_ARC}.13": "pp_auth_role",
    CLI_AUTH: "pp_cli_auth",
}

# Names that OpenSSL knows and people write into csr_attributes.yaml.
_OTHER_NAMES: Mapping[str, str] = {
    "challengePassword": CHALLENGE_PASSWORD,
    "unstructuredName": "1.2.840.113549.1.9.2",
    "subjectAltName": SUBJECT_ALT_NAME,
    "extReq": EXTENSION_REQUEST,
    "msExtReq": MS_EXTENSION_REQUEST,
    "nsComment": NS_COMMENT,
}


def in_arc(oid: str, arc: str) -> bool:
    """Return whether `oid` lies below `arc`; the arc itself does not."""
    return oid.startswith(f"{arc}.")


def is_authorization(oid: str) -> bool:
    """Return whether a request for `oid` asks for rights on the server."""
    return in_arc(oid, AUTHORIZATION_ARC)


@dataclass(frozen=True, slots=True)
class OidNames:
    """Short names of OIDs: Puppet's own and those a site adds by custom_trusted_oid_mapping.yaml."""

    custom: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, oid: str) -> str:
        """Return the short name, or the dotted number itself."""
        return self.custom.get(oid) or SHORT_NAMES.get(oid, oid)

    def oid_of(self, name: str) -> str:
        """Return the dotted number of a short name or of itself; ConfigError when it is neither."""
        for known in (self.custom, SHORT_NAMES):
            for oid, short in known.items():
                if short == name:
                    return oid
        if name in _OTHER_NAMES:
            return _OTHER_NAMES[name]
        try:
            return x509.ObjectIdentifier(name).dotted_string
        except ValueError as err:
            raise ConfigError(
                f"{quoted_for_log(name)} is neither an OID nor a known short name",
                hint="Known names are pp_uuid, pp_role and so on; a site's own go into custom_trusted_oid_mapping.yaml.",
            ) from err

    @classmethod
    def load(cls, path: Path) -> OidNames:
        """
        Return the names of `custom_trusted_oid_mapping.yaml`; only Puppet's own when there is no such file.

        Shape: `oid_mapping: {'<oid>': {shortname: s, longname: l}}`. Raises ConfigError naming file and entry.
        """
        hint = "It reads: oid_mapping: {'1.3.6.1.4.1.34380.1.2.1': {shortname: myname, longname: My Name}}"
        document = yaml_map(path, hint=hint)
        if document is None:
            return cls()
        mapping = document.get("oid_mapping")
        if not isinstance(mapping, dict):
            raise ConfigError(f"Could not read {path}: there is no map 'oid_mapping'", hint=hint)
        return cls({str(oid): _short_name(path, str(oid), entry) for oid, entry in mapping.items()})


def _short_name(path: Path, oid: str, entry: object) -> str:
    name = entry.get("shortname") if isinstance(entry, dict) else None
    problem = ""
    if not isinstance(name, str) or not name:
        problem = "has no 'shortname'"
    else:
        try:
            x509.ObjectIdentifier(oid)
            return name
        except ValueError:
            problem = "is not an OID"
    raise ConfigError(f"Could not read {path}: {quoted_for_log(oid)} {problem}")
