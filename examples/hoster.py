"""A DNS provider for tries and tests: a REST API over zones in memory."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Zones = dict[str, dict[str, Any]]


class Hoster(ThreadingHTTPServer):
    """
    `GET /zones`, `PUT` and `DELETE /zones/ZONE`, the same with `/zones/ZONE/records` and `/zones/ZONE/records/NAME/TYPE`.

    Listens on 127.0.0.1; `asked` lists the requests with the right token, `changes` those of them that were not GET.
    """

    def __init__(self, port: int = 0, token: str = "secret") -> None:  # noqa: S107  # nobody's secret
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = token
        self.zones: Zones = {}
        self.records: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    @property
    def changes(self) -> list[str]:
        return [each for each in self.asked if not each.startswith("GET ")]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hoster

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self._send(401, {"error": "wrong token"})
        self.server.asked.append(f"{self.command} {self.path}")
        match self.path.strip("/").split("/"):
            case ["zones"]:
                return self._send(200, self.server.zones)
            case ["zones", zone]:
                return self._entry(self.server.zones, zone, body)
            case ["zones", zone, "records"] if zone in self.server.zones:
                return self._send(200, self.server.records.get(zone, {}))
            case ["zones", zone, "records", name, kind] if zone in self.server.zones:
                return self._entry(self.server.records.setdefault(zone, {}), f"{name}/{kind}", body)
        return self._send(404, {"error": "there is no such thing"})

    do_GET = do_PUT = do_DELETE = _answer

    def _entry(self, table: dict[str, Any], key: str, body: Any) -> None:
        if self.command == "PUT":
            table[key] = body
        elif key not in table:
            return self._send(404, {"error": f"there is no {key}"})
        elif self.command == "DELETE":
            del table[key]
        return self._send(200, table.get(key, {}))

    def _send(self, status: int, data: Any) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


if __name__ == "__main__":
    hoster = Hoster(int(sys.argv[1]) if len(sys.argv) > 1 else 8053)
    print(f"serving {hoster.url}", flush=True)  # noqa: T201
    hoster.serve_forever()
