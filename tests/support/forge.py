"""A small Puppet Forge on 127.0.0.1: the releases of made-up modules behind the v3 API, for the real `puppet module` and for ours."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


def metadata_of(name: str, version: str, dependencies: Mapping[str, str | None] | None = None, **more: Any) -> dict[str, Any]:
    """Return the metadata.json of a made-up module."""
    wanted = [{"name": each} | ({} if need is None else {"version_requirement": need}) for each, need in (dependencies or {}).items()]
    author = name.partition("-")[0]
    base = {"name": name, "version": version, "author": author, "summary": f"The module {name}.", "license": "Apache-2.0"}
    return {**base, "source": f"https://example.com/{name}", "dependencies": wanted, **more}


def module_files(metadata: Mapping[str, Any], files: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Return the files of a made-up module, with their sums."""
    short = str(metadata["name"]).replace("/", "-").partition("-")[2] or str(metadata["name"])
    texts = {"metadata.json": json.dumps(metadata), "manifests/init.pp": f"class {short} {{ }} # {metadata['version']}\n", **(files or {})}
    contents = {name: text.encode() for name, text in texts.items()}
    sums = {name: hashlib.md5(content, usedforsecurity=False).hexdigest() for name, content in contents.items()}
    return {**contents, "checksums.json": json.dumps(sums).encode()}


def packed(files: Mapping[str, bytes], top: str = "module", members: Sequence[tarfile.TarInfo] = ()) -> bytes:
    """Return a gzipped tar archive of files below a folder `top`, and of `members` that have no content."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        folders = {top, *(f"{top}/{name.rpartition('/')[0]}" for name in files if "/" in name)}
        for name in sorted({"/".join(folder.split("/")[: depth + 1]) for folder in folders for depth in range(folder.count("/") + 1)}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o750
            tar.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(content), 0o755 if name.startswith("scripts/") else 0o600
            tar.addfile(entry, io.BytesIO(content))
        for entry in members:
            tar.addfile(entry)
    return buffer.getvalue()


@dataclass
class LocalForge:
    """
    The releases that it serves, and what it was asked.

    Attributes:
        page: releases in one answer.
        answers: status and body by the beginning of a URL, in place of what it would answer.
        redirects: other servers by the beginning of a URL that they have.
    """

    page: int = 3
    asked: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    url: str = ""
    _releases: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _archives: dict[str, bytes] = field(default_factory=dict)

    def publish(
        self,
        name: str,
        version: str,
        dependencies: Mapping[str, str | None] | None = None,
        *,
        files: Mapping[str, str] | None = None,
        archive: bytes | None = None,
        sums: Mapping[str, str] | None = None,
        **more: Any,
    ) -> bytes:
        """Add a release; return its archive. `sums` stand in place of the right ones, `more` is further metadata."""
        metadata = metadata_of(name, version, dependencies, **more)
        content = packed(module_files(metadata, files), f"{name}-{version}") if archive is None else archive
        path = f"/v3/files/{name}-{version}.tar.gz"
        right = {"file_sha256": hashlib.sha256(content).hexdigest(), "file_md5": hashlib.md5(content, usedforsecurity=False).hexdigest()}
        release = {"slug": f"{name}-{version}", "version": version, "metadata": metadata, "file_uri": path}
        self._releases.setdefault(name, []).append({**release, **(right if sums is None else sums)})
        self._archives[path] = content
        return content

    def answer(self, target: str) -> tuple[int, bytes]:
        self.asked.append(target)
        for prefix, answer in self.answers.items():
            if target.startswith(prefix):
                return answer
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path in self._archives:
            return 200, self._archives[parts.path]
        if parts.path == "/v3/releases":
            return 200, self._paged(target, query, list(reversed(self._releases.get(query.get("module", ""), []))))
        if parts.path == "/v3/modules":
            term = query.get("query", "")
            found = [self._module(name, releases) for name, releases in sorted(self._releases.items()) if term in name]
            return 200, self._paged(target, query, found)
        return 404, json.dumps({"message": "404 Not Found", "errors": ["'The requested resource could not be found'"]}).encode()

    def _paged(self, target: str, query: Mapping[str, str], results: Sequence[Mapping[str, Any]]) -> bytes:
        start = int(query.get("offset", "0"))
        base = target.partition("&offset=")[0]
        following = f"{base}&offset={start + self.page}" if start + self.page < len(results) else None
        return json.dumps({"pagination": {"next": following}, "results": results[start : start + self.page]}).encode()

    def _module(self, name: str, releases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        author, _, short = name.partition("-")
        current = {"version": releases[-1]["version"], "tags": ["made", "up"], "metadata": releases[-1]["metadata"]}
        return {"name": short, "slug": name, "owner": {"username": author}, "homepage_url": "", "current_release": current}


@contextmanager
def serving(forge: LocalForge) -> Iterator[LocalForge]:
    """Serve a Forge on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            forge.agents.append(self.headers.get("User-Agent", ""))
            forge.authorizations.append(self.headers.get("Authorization", ""))
            target = next((url for prefix, url in forge.redirects.items() if self.path.startswith(prefix)), "")
            status, body = (302, b"") if target else forge.answer(self.path)
            self.send_response(status)
            if target:
                self.send_header("Location", target + self.path)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    forge.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
