"""Requests that a master has to refuse with 4xx, whoever of its agents sends them."""

from __future__ import annotations

Bad = tuple[str, str, bytes, dict[str, str]]  # method, target, body, headers

_ENVIRONMENT = "?environment=production"


def bad_requests(own: str, other: str) -> list[Bad]:
    """Of `own`, an agent, with designs on `other`."""
    v3 = "/puppet/v3"
    return [
        ("GET", f"{v3}/catalog/{other}{_ENVIRONMENT}", b"", {}),
        ("GET", f"{v3}/node/%2e%2e{_ENVIRONMENT}", b"", {}),
        ("PUT", f"{v3}/facts/{own}{_ENVIRONMENT}", b"[" * 5000, {"Content_Type": "application/json"}),
        ("PUT", f"/production/report/{own}", b"--- !ruby/object:ERB\n", {"Content_Type": "text/yaml"}),
        ("GET", f"{v3}/file_content/modules/none/x{_ENVIRONMENT}", b"", {}),
        ("PUT", "/puppet-ca/v1/certificate_request/agent9", b"not pem", {"Content_Type": "text/plain"}),
    ]


def unknown_paths() -> list[Bad]:
    """Of anybody."""
    return [
        (method, target, b"", {}) for method in ("GET", "PUT") for target in ("/", "/puppet/v3/nothing/x", "/puppet/v9/node/x", "/x/y/z")
    ]
