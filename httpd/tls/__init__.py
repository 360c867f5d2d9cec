"""The server's side of TLS: its trust and certificate, and handshakes in separate threads."""
