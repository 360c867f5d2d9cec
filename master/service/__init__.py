"""What a master does beside its requests: conditions and expiry checks, revocation lists, folders, the audit of refusals, the hard end."""
