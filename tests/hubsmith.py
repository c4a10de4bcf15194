"""A model hub on loopback: the few addresses that huggingface_hub asks for, and some ways to fail."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.weightsmith import sha256


class Hub:
    """One repository, `acme/tiny`: its files, its commit, and what was asked.

    Files that end in .safetensors are kept as a hub keeps large files: their hash is told.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = dict(files)
        self.commit = "1" * 40
        self.asked: list[str] = []
        self.ranges: list[str] = []
        self.cut_after: int | None = None
        self.status: int | None = None
        self.address = ""

    def listing(self) -> dict[str, object]:
        """The answer about the repository, as with `?blobs=true`."""
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            | ({"lfs": {"sha256": sha256(content), "size": len(content), "pointerSize": 130}} if is_large(name) else {})
            for name, content in self.files.items()
        ]
        return {"id": "acme/tiny", "modelId": "acme/tiny", "sha": self.commit, "siblings": siblings, "tags": []}


def is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".gguf"))


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve a hub from a thread; `hub.address` is where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"hub": hub})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        revisions = ("main", self.hub.commit)
        if self.hub.status:
            self.reply(self.hub.status, b"no")
        elif path in {"/api/models/acme/tiny", *(f"/api/models/acme/tiny/revision/{r}" for r in revisions)}:
            self.reply(200, json.dumps(self.hub.listing()).encode())
        elif path.startswith("/acme/tiny/resolve/"):
            revision, name = path.removeprefix("/acme/tiny/resolve/").split("/", 1)
            self.answer_file(name if revision in revisions else "")
        else:
            self.reply(404, b"", {"X-Error-Code": "RepoNotFound"})

    def answer_file(self, name: str) -> None:
        content = self.hub.files.get(name)
        if content is None:
            self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        start = 0
        if asked := self.headers.get("Range"):
            self.hub.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").split("-")[0])
        headers = {"ETag": f'"{sha256(content)}"', "X-Repo-Commit": self.hub.commit, "Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.reply(206 if start else 200, content[start:], headers)

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.hub.cut_after is not None and len(body) > self.hub.cut_after:
            body = body[: self.hub.cut_after]
            self.hub.status = 503  # and from now on it is not to be reached
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        """Say nothing."""
