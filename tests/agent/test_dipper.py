"""Buckets as the agent uses them: local folders and a server's store."""

import hashlib

import pytest

from agent.servers.dipper import LocalDipper, RemoteDipper, bucket_factory
from shared.errors import NotFound, Unsupported
from shared.filesystem.bucket import Bucket
from shared.indirector import Binding, Terminus
from shared.models.file_bucket_file import FILE_BUCKET_FILE, FileBucketFile
from shared.types.filebucket import Filebucket

SUM = hashlib.sha256(b"content").hexdigest()


class Server(Terminus):
    """A server's bucket: key → bytes; counts what it was asked."""

    def __init__(self):
        self.stored = {}
        self.asked = []

    async def head(self, request):
        self.asked.append("head")
        return request.key in self.stored

    async def save(self, request):
        self.asked.append("save")
        self.stored[request.key] = b"".join([chunk async for chunk in request.instance.chunks()])

    async def find(self, request):
        for key, content in self.stored.items():
            if key.startswith(request.key):

                async def chunks(content=content):
                    yield content

                return FileBucketFile(name=request.key, chunks=chunks)
        return None


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"content")
    with path.open("rb") as file:
        yield file.fileno(), str(path)


async def fetched(dipper, value):
    return b"".join([block async for block in dipper.fetch(value)])


async def test_a_servers_bucket_is_asked_first_and_sent_only_what_it_lacks(kept):
    server = Server()
    dipper = RemoteDipper(Binding(FILE_BUCKET_FILE, server))
    assert await dipper.keep(*kept) == SUM
    assert await dipper.keep(*kept) == SUM
    assert server.asked == ["head", "save", "head"]
    assert list(server.stored) == [f"sha256/{SUM}/{kept[1]}"]
    assert await fetched(dipper, SUM) == b"content"


async def test_a_server_of_3x_stores_by_md5(kept):
    server = Server()
    value = await RemoteDipper(Binding(FILE_BUCKET_FILE, server), algorithm="md5").keep(*kept)
    assert value == hashlib.md5(b"content").hexdigest() and next(iter(server.stored)).startswith(f"md5/{value}/")


async def test_what_a_bucket_does_not_have_is_named(tmp_path):
    for dipper in (RemoteDipper(Binding(FILE_BUCKET_FILE, Server())), LocalDipper(Bucket(tmp_path))):
        with pytest.raises(NotFound, match=SUM):
            await fetched(dipper, SUM)


async def test_a_local_bucket_keeps_and_gives_back(tmp_path, kept):
    dipper = LocalDipper(Bucket(tmp_path / "bucket", reserve=0))
    assert await dipper.keep(*kept) == await dipper.keep(*kept) == SUM
    assert dipper.bucket.paths(SUM) == [kept[1]] and await fetched(dipper, SUM) == b"content"


def test_a_filebucket_resource_says_where_its_bucket_is(tmp_path):
    asked = []
    choose = bucket_factory(tmp_path / "own", remote=lambda server, port: asked.append((server, port)) or "remote")
    assert choose(None).bucket.root == tmp_path / "own"
    assert choose(Filebucket("puppet", {})).bucket.root == tmp_path / "own"
    assert choose(Filebucket("x", {"path": "/b"})).bucket.root.as_posix() == "/b"
    assert choose(Filebucket("y", {"path": False, "server": "s", "port": 8140})) == "remote" and asked == [("s", 8140)]
    with pytest.raises(Unsupported, match="Filebucket"):
        bucket_factory(tmp_path)(Filebucket("y", {"path": False}))
