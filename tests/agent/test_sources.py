"""Where contents come from: which server is asked for which key."""

import pytest

from agent.servers.sources import LocalSources, SourceRouter
from shared.errors import BadRequest, NotFound, Unsupported
from shared.file_serving.metadata import MetadataOptions
from shared.indirector import Binding, Terminus
from shared.models.file_content import FILE_CONTENT, FileContent
from shared.models.file_metadata import FILE_METADATA, FileMetadata


class Shelf(Terminus):
    """Answers everything, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def find(self, request):
        self.asked.append((request.key, request.environment, dict(request.options)))
        return self.answer

    async def search(self, request):
        self.asked.append((request.key, request.environment, dict(request.options)))
        return [self.answer] if self.answer else None


def chunks():
    async def blocks():
        yield b"ab"
        yield b"c"

    return blocks()


META = FileMetadata(name="/x", path="/x", type="file")


@pytest.fixture
def shelves():
    return Shelf(META), Shelf(FileContent(name="x", chunks=chunks))


def sources(shelves, **more):
    return SourceRouter(Binding(FILE_METADATA, shelves[0]), Binding(FILE_CONTENT, shelves[1]), environment="test", **more)


async def test_a_tree_is_asked_for_with_all_that_matters(shelves):
    wanted = MetadataOptions(links="follow", checksum_type="md5", recurse=True, recurselimit=2, max_files=-1, ignore=(".git", "*.bak"))
    assert await sources(shelves).search("puppet:///plugins", wanted) == [META]
    key, environment, options = shelves[0].asked[0]
    assert (key, environment) == ("plugins", "test")
    assert options == {
        "links": "follow", "checksum_type": "md5", "source_permissions": "ignore", "recurse": "true",
        "recurselimit": "2", "max_files": "-1", "ignore": [".git", "*.bak"], "unserved": "true",
    }  # fmt: skip


async def test_a_url_with_a_host_goes_to_that_server(shelves):
    other = Shelf(META), Shelf(None)
    asked = []

    def elsewhere(host, port):
        asked.append((host, port))
        return Binding(FILE_METADATA, other[0]), Binding(FILE_CONTENT, other[1])

    found = sources(shelves, elsewhere=elsewhere)
    await found.metadata("puppet://other:8141/modules/m/f", MetadataOptions())
    assert asked == [("other", 8141)] and other[0].asked[0][0] == "modules/m/f" and shelves[0].asked == []
    with pytest.raises(NotFound):
        [block async for block in found.content("puppet://other/modules/m/f", None)]


async def test_static_content_comes_from_the_catalogs_code(shelves):
    asked = []

    async def static(path, code_id):
        asked.append((path, code_id))
        yield b"static"

    inlined = META.model_copy(update={"content_uri": "puppet:///modules/m/files/f"})
    found = sources(shelves, static=static, code_id="abc")
    assert [block async for block in found.content("puppet:///modules/m/f", inlined)] == [b"static"]
    assert asked == [("modules/m/files/f", "abc")]
    with pytest.raises(Unsupported):
        [block async for block in sources(shelves).content("puppet:///modules/m/f", inlined)]


async def test_content_comes_in_the_servers_chunks(shelves):
    assert [block async for block in sources(shelves).content("puppet:///modules/m/f", None)] == [b"ab", b"c"]


@pytest.mark.parametrize("source", ["puppet:///", "puppet://host"])
async def test_a_url_that_names_no_file_is_refused(shelves, source):
    with pytest.raises(BadRequest):
        await sources(shelves).metadata(source, MetadataOptions())


async def test_local_files_are_never_asked_of_a_server(shelves, tmp_path):
    (tmp_path / "f").write_bytes(b"local")
    found = await sources(shelves).metadata(f"file://{tmp_path}/f", MetadataOptions())
    assert found.type == "file" and shelves[0].asked == []
    assert b"".join([block async for block in LocalSources().content(f"file://{tmp_path}/f", None)]) == b"local"
    with pytest.raises(BadRequest):
        await LocalSources().metadata("file://host/x", MetadataOptions())
