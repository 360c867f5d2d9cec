"""
The sources of the documentation's site, for mkdocs: `python packaging/docs/pages.py FOLDER` writes them.

They are README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and docs/, in Markdown as Python-Markdown reads it, and the reference, which is
made of the declarations in the code.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from bunraku.commandlines.specs import load_specs
from bunraku.puppet import main as puppet
from shared.process.command import paragraphs
from store.queries.schema.entities import ENTITIES
from store.queries.schema.relations import relation

ROOT = Path(__file__).parents[2]
MOVED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
PICTURES = {".png", ".svg"}
LINK = re.compile(r"\[([^\[\]]*)\]\((?!https?:|#)([^)#\s]+)(#[\w-]+)?\)")
FENCE = re.compile(r"^(\s*)```(\w*).*$")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.) +")

REFERENCE = """# Reference

| what | where |
|---|---|
| commands with their options | [Commands](commands.md) |
| settings of puppet.conf | [Settings](settings.md) |
| resource types and providers | [Resource types](../types.md), [attributes of all types](metaparameters.md) |
| functions of the language and of stdlib | [Functions](functions.md) |
| requests to a master and a store | [HTTP](http.md) |
| entities and fields of queries | [PQL](pql.md); the language is explained [with the store](../store.md) |
| metrics | [with the operation of a master](../operation.md#metrics) |
| which agents, servers and tools are tested | [Compatibility](../compatibility.md) |
"""

PQL = """# PQL

Queries can ask for these entities. [The page on the store](../store.md) explains the language. The name of a *dotted* field may go on
into its value, as in `facts.os.family`.
"""


def site_path(path: str) -> str | None:
    """Return the path in the site of a file of the project, or None when the site does not have it."""
    name = PurePosixPath(path)
    if path in MOVED:
        return MOVED[path]
    is_page = name.suffix == ".md" or name.suffix in PICTURES
    return str(name.relative_to("docs")) if is_page and name.is_relative_to("docs") else None


def with_links(text: str, page: str) -> str:
    """Return a page of the project with its links as they are in the site; a file that the site lacks is named instead."""
    here = str(PurePosixPath(site_path(page) or page).parent)

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        path = os.path.normpath(PurePosixPath(page).parent / target)
        if (moved := site_path(path)) is not None:
            return f"[{label}]({os.path.relpath(moved, here)}{anchor})"
        is_name = re.sub(r"[`\s]", "", label) in path
        return f"`{path}`" if is_name else f"{label} (`{path}`)"

    return LINK.sub(link, text)


def as_python_markdown(text: str) -> str:
    """Return Markdown in the stricter form: lists after an empty line, items with four columns, blocks without names."""
    lines: list[str] = []
    shift, in_block, is_listed = 0, False, False
    for line in text.split("\n"):
        item = ITEM.match(line)
        if fence := FENCE.match(line):
            line = f"{fence[1]}```{'' if in_block else fence[2]}"
            in_block = not in_block
        elif line.lstrip().startswith("<!--") and line.rstrip().endswith("-->") and not in_block:
            continue
        elif item and not in_block and not item[1]:
            if not is_listed and lines and lines[-1].strip():
                lines.append("")
            shift, is_listed = 4 - len(item[0]), True
            lines.append(line)
            continue
        if line and not line.startswith(" ") and not in_block:
            is_listed = False
        lines.append(f"{' ' * shift}{line}" if is_listed and line.startswith(" ") else line)
    return "\n".join(lines)


def hand_written() -> Iterator[tuple[str, str]]:
    """Yield path and text of the pages that people write."""
    for path in [*map(ROOT.joinpath, MOVED), *sorted((ROOT / "docs").rglob("*.md"))]:
        name = str(path.relative_to(ROOT))
        yield site_path(name) or name, as_python_markdown(with_links(path.read_text("utf-8"), name))


def printed(*arguments: str) -> str:
    """Return the output of a `puppet` command."""
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(output):
        puppet(list(arguments))
    output.flush()
    return output.buffer.getvalue().decode("utf-8")


def commands() -> str:
    """Return the page of all commands, from their declarations."""
    parts = ["# Commands\n\nEvery command prints this with `--help`. Modules may bring more; `puppet help` lists them, too.\n"]
    for spec in load_specs():
        parts.append(f"## puppet {spec.name}\n\n{spec.summary}.\n")
        if spec.settings:
            parts.append("Every setting of puppet.conf is [an option, too](settings.md).\n")
        for part in (spec, *spec.parts):
            usage = "\n".join(part.usage_lines)
            parts += [f"```text\n{usage}\n```\n", *map(prose, paragraphs(part.text))]
            for heading, rows in part.tables().items():
                if rows:
                    lines = [f"| `{term}` | {prose(doc).strip()} |" for term, doc in rows.items()]
                    parts.append("\n".join([f"| {heading.lower()} | |", "|---|---|", *lines, ""]))
            parts += map(prose, paragraphs(part.notes))
    return "\n".join(parts)


def prose(paragraph: str) -> str:
    """Return a paragraph of a help as Markdown; an indented one is an example."""
    if paragraph.startswith(" ") or "\n  " in paragraph:
        return f"```text\n{paragraph}\n```\n"
    return re.sub(r"[<>|*]", lambda match: f"&#{ord(match[0])};", paragraph) + "\n"


def http() -> str:
    """Return the page of all requests, from the OpenAPI documents."""
    parts = ["# HTTP\n\n`docs/api` has these requests as OpenAPI documents, with their parameters and answers.\n"]
    for title, file in (("A master", "openapi.yaml"), ("A store", "store.yaml")):
        document: Mapping[str, Any] = yaml.safe_load((ROOT / "docs/api" / file).read_text("utf-8"))
        parts.append(f"## {title}\n\n| request | what | who may, by default |\n|---|---|---|")
        for path, methods in document["paths"].items():
            for method, call in methods.items():
                if isinstance(call, Mapping) and "operationId" in call:
                    parts.append(f"| `{method.upper()} {path}` | {call.get('summary', '')} | {call.get('x-allowed', '')} |")
        parts.append("")
    return "\n".join(parts)


def pql() -> str:
    """Return the page of the entities that queries can ask for."""
    parts = [PQL]
    for entity in ENTITIES.values():
        inner = [f"`{name}`" for name in ENTITIES if relation(entity.name, name) is not None]
        parts.append(f"## {entity.name}\n\n| field | kind | in conditions |\n|---|---|---|")
        for field in entity.fields:
            kind = field.kind.name.lower().replace("_", " ")
            parts.append(f"| `{field.name}` | {kind}{', dotted' if field.has_dotted else ''} | {'yes' if field.is_queryable else 'no'} |")
        parts.append(f"\nSubqueries: {', '.join(inner) or 'none'}.\n")
    return "\n".join(parts)


def reference() -> Iterator[tuple[str, str]]:
    """Yield path and text of the pages that are made of declarations."""
    yield "reference/index.md", REFERENCE
    yield "reference/commands.md", commands()
    yield "reference/http.md", http()
    yield "reference/pql.md", pql()
    for name, printed_by in (("settings", "configuration"), ("functions", "function"), ("metaparameters", "metaparameter")):
        yield f"reference/{name}.md", printed("doc", "--reference", printed_by)


def write_pages(folder: Path) -> None:
    """Write all pages and pictures to a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in (*hand_written(), *reference()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in (ROOT / "docs").rglob("*"):
        if path.suffix in PICTURES:
            shutil.copy(path, folder / path.relative_to(ROOT / "docs"))


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
