"""
Compiles the nodes and roles of public control repositories, by the real Puppet and by ours: `make field SITES=FOLDER`.

    python -m tests.field FOLDER [SITE …]             a line a site: equal, same error, only ours or only theirs fails, differ
    python -m tests.field FOLDER SITE --only PATTERN  only the nodes, roles and facts whose id the pattern matches
    python -m tests.field FOLDER SITE --every 10      only each tenth of them
    python -m tests.field FOLDER SITE --show          also what differs, and each error
    python -m tests.field FOLDER --puppet8 LIBRARY    by another release, whose Ruby is in that folder
    python -m tests.field FOLDER --table              the table of docs/compatibility.md

Whoever runs it brings FOLDER: in `SITE/production` the checkout, with the modules of its Puppetfile; in `core` the modules that Puppet's
own packages bring; in `facts` sets of facts as Facter prints them, one JSON file each. sites.yaml says how a site is compiled, and which
stubs stand for what is private; they are written into the checkout, so both compile the same. The real answers are kept in
`SITE/answers`, where a question that was asked already is not asked again. Nothing of all this is ever committed.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agent.facts.legacy import legacy_facts
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import DiskFiles
from environments.module_types.registry import RubyTypeCache
from language.codegen.codecache import CodeCache
from language.evaluation.runtime import NAMES
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.syntax.nodes import NodeDefinition, RegexpLiteral, StringLiteral
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import PuppetError
from shared.settings import AgentSettings, MasterSettings, load
from shared.settings.in_manifests import values_in_manifests
from tests.field.matching import text_for
from tests.modules.catalogs import compiled, differences, said
from tests.modules.run import RUBY

HERE = Path(__file__).parent
REFERENCE = HERE.parent / "modules" / "reference.rb"
OUR_SECONDS = 120.0
STUBS_OF_A_NODE = 40
PLACES = ("confdir", "vardir", "ssldir", "codedir", "rundir", "cadir")
CAUSES = 25
STATES = ("equal", "same error", "only ours fails", "only theirs fails", "differ")
VERSIONS = {"7": "7.23.0", "8": "8.10.0"}


@dataclass(frozen=True, slots=True)
class Site:
    """
    A public site, as sites.yaml describes it.

    Attributes:
        modulepath: folders below the checkout; None: `modules`.
        nodes: whether the nodes of its main manifest are compiled.
        names: further names of nodes to compile.
        data_files: patterns of files of data that are named after nodes or roles, each with its certname; `{}` is the file's name.
        roles: matches the whole names of classes that are compiled by themselves, as node NAME-OF-THE-CLASS.example.com.
        facts: the sets of facts to compile with, each a file below `facts` without its ending.
        values: facts beside these; `{role}` in them is the last part of the class's name, or the name of the file of data.
        variables: top-scope variables, as a classifier sets them; `{role}` as in `values`.
        settings: settings that are not the release's defaults; `{root}` in them is the checkout.
        stubs: texts by path below the checkout; they stand for what is private.
        domain: of nodes whose pattern leaves it open.
        private: what is added to which `file` when the real Puppet's `error` says that it is missing; `{}` in them is what its group
            matches, or the key of a class's parameter for two groups. The node is then compiled again.
        edited: files by path below the checkout, each made `of` another one with texts replaced, as places and backends of data.
        eyaml: matches the files of data whose encrypted values are replaced by `stub`, encrypted with a key that is made in `keys`.
    """

    repository: str
    commit: str
    facts: Sequence[str]
    modulepath: Sequence[str] = ("modules",)
    manifest: str = "manifests"
    nodes: bool = True
    names: Sequence[str] = ()
    data_files: Mapping[str, str] = field(default_factory=dict)
    roles: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    stubs: Mapping[str, str] = field(default_factory=dict)
    domain: str = "example.com"
    private: Sequence[Mapping[str, str]] = ()
    edited: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    eyaml: str = ""


def sites() -> dict[str, Site]:
    """All sites by name."""
    entries = yaml.safe_load((HERE / "sites.yaml").read_text())
    return {name: Site(**entry) for name, entry in entries.items() if not name.startswith(".")}


def jobs_of(folder: Path, name: str, site: Site) -> list[dict[str, Any]]:
    """What is to be compiled of a site, in the form that reference.rb reads. An empty PuppetDB stands behind both compilers."""
    root = folder / name / "production"
    modulepath = [str(root / each) for each in site.modulepath] + [str(folder / "core")]
    _write_stubs(root, site, modulepath)
    if site.eyaml and not (root / "keys").exists():
        _encrypt(root, site.eyaml)
    (folder / name / "vardir").mkdir(exist_ok=True)  # functions keep there what they make up, as keys
    places = {each: str(folder / name / each) for each in PLACES}
    own = {**places, "storeconfigs": True, "storeconfigs_backend": "puppetdb"}
    settings = own | {key: value.format(root=root) if isinstance(value, str) else value for key, value in site.settings.items()}
    found = []
    names = [*site.names, *(_node_names(root / site.manifest, site.domain) if site.nodes else ())]
    asked = [(each, each, ()) for each in dict.fromkeys(names)]
    for pattern, certname in site.data_files.items():
        asked += [(each.stem, certname.replace("{}", each.stem.replace("_", "-")), ()) for each in sorted(root.glob(pattern))]
    roles = sorted(_classes(root, site)) if site.roles else []
    asked += [(each, each.replace("::", "-").replace("_", "-") + f".{site.domain}", (each,)) for each in roles]
    for facts in site.facts:
        values = json.loads((folder / "facts" / f"{facts}.json").read_text())
        for title, certname, classes in asked:
            more, variables = json.loads(json.dumps([site.values, site.variables]).replace("{role}", title.rpartition("::")[2]))
            found.append(
                {
                    "id": f"{title} {facts}",
                    "root": str(root),
                    "manifest": str(root / site.manifest),
                    "modulepath": modulepath,
                    "certname": certname,
                    "facts": _named(_merged(values, more), certname),
                    "parameters": variables,
                    "classes": classes,
                    "settings": settings,
                }
            )
    return found


def _write_stubs(root: Path, site: Site, modulepath: Sequence[str]) -> None:
    texts = {**site.stubs, "environment.conf": f"modulepath = {':'.join(modulepath)}\nmanifest = {site.manifest}\n"}
    for path, edit in site.edited.items():
        original = root.parent / "originals" / edit["of"]  # the file may be edited in its place
        if not original.exists():
            original.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / edit["of"], original)
        text = original.read_text("utf-8")
        for old, new in edit["replace"].items():
            text = text.replace(old, new.replace("{root}", str(root)))
        texts[path] = text
    for path, text in texts.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(text)


def _encrypt(root: Path, pattern: str) -> None:
    """Encrypt a stub in place of each encrypted value, whose key only the site has."""
    private, public = root / "keys" / "private_key.pkcs7.pem", root / "keys" / "public_key.pkcs7.pem"
    private.parent.mkdir()
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stub", "-keyout", str(private), "-out", str(public)]
    subprocess.run(made, check=True, capture_output=True)
    sealed = subprocess.run(
        ["openssl", "smime", "-encrypt", "-aes256", "-outform", "DER", str(public)], input=b"stub", capture_output=True, check=True
    ).stdout
    stub = f"ENC[PKCS7,{base64.b64encode(sealed).decode()}]"
    for path in root.glob(pattern):
        path.write_text(re.sub(r"ENC\[PKCS7,[^]]*\]", stub, path.read_text("utf-8")))


def _named(facts: Mapping[str, Any], certname: str) -> dict[str, Any]:
    """The facts of a node with that name."""
    host, _, domain = certname.partition(".")
    names = {"hostname": host, "domain": domain, "fqdn": certname}
    networking = {**facts.get("networking", {}), **names}
    whole = {**facts, "networking": networking}
    return {**legacy_facts(whole), **whole, "clientcert": certname, "clientversion": "7.23.0", "clientnoop": False}


def _merged(facts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with those that a site adds; structured ones are merged."""
    return {**facts, **{key: {**facts[key], **each} if isinstance(each, dict) and key in facts else each for key, each in more.items()}}


def _node_names(manifest: Path, domain: str) -> Iterator[str]:
    """A name for each node definition, where one can be made up."""
    files = sorted(manifest.rglob("*.pp")) if manifest.is_dir() else [manifest]
    for path in files:
        for node in parse(Source(path.read_text("utf-8"), str(path))).definitions:
            for match in node.matches if isinstance(node, NodeDefinition) else ():
                if isinstance(match, StringLiteral):
                    yield match.value
                elif isinstance(match, RegexpLiteral):
                    yield from text_for(match.source, domain)
                else:
                    yield f"some.{domain}"


def _classes(root: Path, site: Site) -> Iterator[str]:
    for folder in site.modulepath:
        for path in sorted((root / folder).glob("*/manifests/**/*.pp")):
            module, _, *rest = path.relative_to(root / folder).with_suffix("").parts
            name = "::".join([module, *rest]).removesuffix("::init")
            if re.fullmatch(site.roles, name) and re.search(
                rf"^\s*class\s+(::)?{name}\b", path.read_text("utf-8", "replace"), re.MULTILINE
            ):
                yield name


def by_reference(jobs: Sequence[Mapping[str, Any]], site: Site, kept: Path, library: str) -> dict[str, dict[str, Any]]:
    """The real answers by id; those that are not kept in the file yet are asked for."""
    answers: dict[str, dict[str, Any]] = {}
    if kept.exists():
        with kept.open() as lines:
            answers = {each["id"]: each for each in map(json.loads, lines)}
    kept.parent.mkdir(exist_ok=True)
    open_ones = [each for each in jobs if each["id"] not in answers]
    if open_ones:
        command = ["ruby", *(["-I", library] if library else []), str(REFERENCE)]
        with (
            kept.open("a") as into,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env={**os.environ, "LC_ALL": "C.UTF-8"}
            ) as process,
        ):
            assert process.stdin is not None and process.stdout is not None
            while open_ones:
                stubbed = 0
                for number, job in enumerate(open_ones):
                    for _ in range(STUBS_OF_A_NODE):
                        process.stdin.write(json.dumps(job) + "\n")
                        process.stdin.flush()
                        if not (line := process.stdout.readline()):
                            raise RuntimeError(f"the real Puppet ended at {job['id']}")
                        answer = json.loads(line)
                        if not _stub_private(Path(job["root"]), site, answer.get("error", "")):
                            break
                        stubbed = number
                    into.write(line)
                    into.flush()
                    answers[answer["id"]] = answer
                    print(f"  {answer['id']}: {answer.get('error', 'compiled')[:300]}", file=sys.stderr)
                open_ones = open_ones[:stubbed]  # they were compiled before the last stub was there
    return answers


def _stub_private(root: Path, site: Site, error: str) -> bool:
    """Add what the error says is missing, unless it has been added before."""
    for rule in site.private:
        if match := re.search(rule["error"], error):
            key = match[1] if len(match.groups()) == 1 else "::".join(match.groups()).lower()
            place = root / rule["file"].replace("{}", key)
            text = rule["text"].replace("{}", key)
            if place.exists() and text in place.read_text("utf-8"):
                return False
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("a") as file:
                file.write(text)
            return True
    return False


class Ours:
    """A site's environment as we compile it: read once."""

    def __init__(self, job: Mapping[str, Any], version: str) -> None:
        self.logs: list[list[str]] = []
        self.version = version
        strict = (
            {"strict": "warning", "strict_variables": False} if version.startswith("7") else {"strict": "error", "strict_variables": True}
        )
        places = load(MasterSettings, section="user", flags={each: job["settings"][each] for each in PLACES})
        settings = values_in_manifests(places, AgentSettings) | strict
        settings |= {
            "server": "puppet",
            "manifest": job["manifest"],
            "environment": "production",
            "modulepath": ":".join(job["modulepath"]),
        }
        self.world = DirectoryEnvironment(
            Environment("production", job["root"], tuple(job["modulepath"]), job["manifest"]),
            DiskFiles(),
            settings={**settings, **job["settings"]},
            services=EnvironmentServices(ruby_types=RubyTypeCache(), ruby=RUBY, ask_puppetdb=lambda questions: [b"[]"] * len(questions)),
        )
        told = self.logs
        self.loader = Loader(
            self.world, NAMES, CodeCache(), log=lambda level, finding: told.append([level, finding.message]), builtins=all_functions()
        )

    def answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """What we make of one node; a crash and a compilation that takes too long are errors, too."""
        self.logs.clear()
        before = signal.signal(signal.SIGALRM, _run_out)
        signal.setitimer(signal.ITIMER_REAL, OUR_SECONDS)
        try:
            return compiled(
                self.world,
                self.loader,
                job["certname"],
                job["facts"],
                self.logs,
                parameters=job["parameters"],
                classes=job["classes"],
                version=self.version,
            )
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _run_out(_signal: int, _frame: object) -> None:
    raise PuppetError(f"no catalog in {OUR_SECONDS:.0f} s")


def judged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The state of a node, and why it is not `equal`."""
    if "error" in theirs or "error" in ours:
        errors = [theirs.get("error", ""), ours.get("error", "")]
        if not errors[0]:
            return "only ours fails", [errors[1]]
        if not errors[1]:
            return "only theirs fails", [errors[0]]
        same = errors[0] == errors[1]
        return ("same error", [errors[0]]) if same else ("differ", [f"wanted {errors[0]}, got {errors[1]}"])
    found = differences(theirs, ours)
    heard = [[[level, said(text)] for level, text in each["logs"] if level not in ("debug", "info")] for each in (theirs, ours)]
    if heard[0] != heard[1]:
        missing, more = ([each for each in one if each not in other] for one, other in (heard, reversed(heard)))
        found.append(f"logs: missing {missing[:2]}, too many {more[:2]}" if missing or more else "logs: another order")
    return ("differ" if found else "equal"), found


def run_site(folder: Path, name: str, site: Site, options: argparse.Namespace) -> collections.Counter[str]:
    """Compile a site by both; print what became of it."""
    version = VERSIONS["8" if options.puppet8 else "7"]
    jobs = jobs_of(folder, name, site)
    if options.only:
        jobs = [each for each in jobs if re.search(options.only, each["id"])]
    jobs = jobs[:: options.every]
    if not jobs:
        raise SystemExit(f"nothing of {name} is to be compiled")
    answers = by_reference(jobs, site, folder / name / "answers" / f"{version}.jsonl", options.puppet8)
    counts: collections.Counter[str] = collections.Counter()
    causes: dict[str, list[str]] = {}
    ours = Ours(jobs[0], version)
    for job in jobs:
        state, why = judged(answers[job["id"]], ours.answer(job))
        counts[state] += 1
        if state not in ("equal", "same error"):
            for each in why[:40]:
                causes.setdefault(f"{state}: {each}", []).append(job["id"])
        if options.show:
            print(f"{job['id']}: {state}", *why[:20], sep="\n    ", flush=True)
    ours.world.close()
    for cause, ids in sorted(causes.items(), key=lambda item: -len(item[1]))[:CAUSES]:
        print(f"  {len(ids)} {ids[0]}: {cause[:600]}")
    print(f"{name}: {len(jobs)}; " + ", ".join(f"{state} {counts[state]}" for state in STATES), flush=True)
    return counts


def row(name: str, site: Site, version: str, counts: Mapping[str, int]) -> str:
    """The site's line in the table."""
    numbers = " | ".join(str(counts.get(state, 0)) for state in STATES)
    link = f"[{site.repository}](https://github.com/{site.repository})"
    return f"| {link} | {site.commit} | {version} | {sum(counts.values())} | {numbers} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Compile the sites; 1 when a catalog differs, or only ours fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.field")
    parser.add_argument("folder", type=Path)
    parser.add_argument("sites", nargs="*")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--puppet8", default="")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(argv)
    folder, known = options.folder.absolute(), sites()
    names = options.sites or [each for each in known if (folder / each / "production").exists()]
    results = {each: run_site(folder, each, known[each], options) for each in names}
    if options.table:
        version = VERSIONS["8" if options.puppet8 else "7"]
        print(*(row(each, known[each], version, counts) for each, counts in results.items()), sep="\n")
    return int(any(counts["differ"] or counts["only ours fails"] for counts in results.values()))


if __name__ == "__main__":
    sys.exit(main())
