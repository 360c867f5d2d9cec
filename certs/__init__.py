"""The PKI: keys, requests, certificates, revocation lists; pure functions over `cryptography`, no HTTP."""
