"""The HTTP kernel: TLS, connections, identity and limits of a server for any application; it knows nothing of Puppet's endpoints."""
