"""The two dialects of Puppet's protocol: formats, negotiation, and the limits of peers' messages."""
