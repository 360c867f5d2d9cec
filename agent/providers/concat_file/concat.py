"""The provider of `concat_file`: makes a `file` of its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shared.errors import ResourceError
from shared.file_serving.metadata import MetadataOptions
from shared.ral import Provider, Ref, State, Type
from shared.types.concat_file import PASSED_ON, ConcatFile
from shared.types.concat_fragment import ConcatFragment
from shared.types.file import File

from ...servers.sources import FileSources
from .pieces import Piece, merge_pieces

MAX_PIECE = 64 * 2**20  # bytes of a piece's source


class Concat(Provider[ConcatFile], type=ConcatFile, name=""):
    """Generates the file directly after its `concat_file`, which contains it: resources that the `concat_file` notifies wait for both."""

    def __init__(self, sources: FileSources) -> None:
        self.sources = sources

    async def retrieve(self, resource: ConcatFile) -> State | None:
        return {"ensure": resource.value_of("ensure")}

    async def generate(self, resource: ConcatFile) -> Sequence[Type]:
        parameters: dict[str, Any] = {"path": resource.path, "ensure": "absent" if resource.ensure == "absent" else "file"}
        parameters |= {name: value for name in PASSED_ON if (value := resource.value_of(name)) is not None}
        parameters |= resource.given_metaparameters(relationships=False)
        return [resource.child(str(resource.path), parameters, type=File)]

    async def eval_generate(self, resource: ConcatFile) -> Sequence[Type]:
        file = resource.find(Ref("file", str(resource.path)))
        if not isinstance(file, File):
            return ()
        if resource.ensure != "absent":
            pieces = [Piece(fragment.order, fragment.name, await self._text(resource, fragment)) for fragment in resource.fragments]
            text = merge_pieces(pieces, order=resource.order, form=resource.format, force=resource.force)
            if any(fragment.is_sensitive("content") or fragment.is_sensitive("source") for fragment in resource.fragments):
                file.origin = replace(file.origin, sensitive=file.origin.sensitive | {"content"})
            if text or resource.create_empty_file:
                file.manage_content(text.encode("utf-8", "surrogateescape"))
            else:
                file.assign("ensure", "absent")
        return [file]

    async def _text(self, resource: ConcatFile, piece: ConcatFragment) -> str:
        content = piece.content if piece.content is not None else await self._fetch(piece)
        text = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else str(content)
        return f"{text}\n" if resource.ensure_newline and not text.endswith("\n") else text

    async def _fetch(self, piece: ConcatFragment) -> bytes:
        sources = self.sources
        for url in piece.source or ():
            metadata = await sources.metadata(url, MetadataOptions(links="follow"))
            if metadata is None:
                continue
            data = bytearray()
            async for block in sources.content(url, metadata):
                data += block
                if len(data) > MAX_PIECE:
                    raise ResourceError(f"{url} is larger than {MAX_PIECE} bytes, which is too large for a piece")
            return bytes(data)
        raise ResourceError(f"Could not retrieve source(s) {', '.join(piece.source or ())}")
