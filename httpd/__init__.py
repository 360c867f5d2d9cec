"""The HTTP kernel: TLS, connections, identity and limits of a server for any application; it knows nothing of Puppet's endpoints."""

__all__ = ["application", "connections", "dispatch", "limits", "messages", "metrics", "options", "peers", "server", "tasks", "tls"]
