"""The server's side of TLS: what it trusts and presents, and handshakes in threads of their own."""
