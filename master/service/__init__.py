"""A master's background work: conditions and expiry checks, revocation lists, folders, the audit of refusals, the hard end."""
