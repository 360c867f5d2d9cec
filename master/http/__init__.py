"""The master's HTTP layer: TLS, connections, authorization, both URL schemes."""
