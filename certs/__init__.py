"""The PKI: keys, requests, certificates, revocation lists; pure functions over `cryptography`, no HTTP."""

__all__ = ["certificates", "crl", "csr", "files", "fingerprints", "keys", "ocsp", "oids", "signatures", "text", "verify"]
