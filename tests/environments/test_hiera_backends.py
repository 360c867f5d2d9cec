"""Backends: files of data, encrypted values, functions in Puppet's language and in Python."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environments.hiera.data.eyaml import DecryptionKeys, decrypt_text
from shared.errors import BadData, CompileError, Unsupported
from tests.support.compiling import compiled

# --- eyaml ---


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key pair as `eyaml createkeys` makes it."""
    folder = tmp_path_factory.mktemp("keys")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=eyaml",
         "-keyout", str(folder / "private_key.pkcs7.pem"), "-out", str(folder / "public_key.pkcs7.pem")],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return folder


def encrypted(folder: Path, text: str, cipher: str = "-aes256") -> str:
    """As hiera-eyaml writes it: CMS EnvelopedData in DER, in base64."""
    done = subprocess.run(
        ["openssl", "cms", "-encrypt", cipher, "-binary", "-outform", "DER", str(folder / "public_key.pkcs7.pem")],
        input=text.encode(), check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return f"ENC[PKCS7,{base64.b64encode(done.stdout).decode()}]"


def opened(folder: Path) -> DecryptionKeys:
    return DecryptionKeys((folder / "private_key.pkcs7.pem").read_bytes(), (folder / "public_key.pkcs7.pem").read_bytes())


def test_values_encrypted_by_openssl_are_read(keys: Path) -> None:
    config = (
        "version: 5\nhierarchy:\n  - name: secrets\n    lookup_key: eyaml_lookup_key\n    path: s.eyaml\n"
        f"    options: {{pkcs7_private_key: {keys}/private_key.pkcs7.pem, pkcs7_public_key: {keys}/public_key.pkcs7.pem}}\n"
    )
    block = encrypted(keys, "in %{facts.kernel}")
    folded = "\n    ".join(block[offset : offset + 60] for offset in range(0, len(block), 60))
    data = (
        f"plain: text\npassword: {encrypted(keys, 'grüß %{facts.kernel}')}\n"
        f"url: 'https://{encrypted(keys, 'me')}:{encrypted(keys, 'secret')}@host'\n"
        f"deep:\n  list: ['{encrypted(keys, 'x')}', 1]\nfolded: >\n    {folded}\n"
    )
    files = {"hiera.yaml": config, "data/s.eyaml": data}
    for name in ("private_key.pkcs7.pem", "public_key.pkcs7.pem"):
        files[f"../{keys}/{name}"] = ""
    manifest = "notice(lookup('plain'), lookup('password'), lookup('url'), lookup('deep'), lookup('folded'))"
    assert _on_disk(keys, files, manifest) == ["text grüß Linux https://me:secret@host {list => [x, 1]} in Linux"]


def _on_disk(keys: Path, files: dict[str, str], manifest: str) -> list[str]:
    """Compile with the keys where they are, everything else in memory."""
    from environments.directories import Environment
    from environments.directory_environment import DirectoryEnvironment
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.evaluation.runtime import NAMES
    from language.host import NodeInput
    from language.loading.builtins import all_functions
    from language.loading.loader import Loader
    from tests.support.memory_files import MemoryFiles

    contents: dict[str, str | bytes] = {f"/env/{path}": text for path, text in files.items()}
    contents |= {str(path): path.read_bytes() for path in keys.iterdir()}
    world = DirectoryEnvironment(Environment("production", "/env", (), None), MemoryFiles(contents), code=manifest)
    logs: list[Any] = []
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
    facts = {"kernel": "Linux"}
    compile_catalog(world, loader, NodeInput("node1", facts=facts, parameters=facts), version=1, log=logs.append, rich=True)
    return [entry.message for entry in logs if entry.level == "notice"]


def test_a_damaged_block_is_an_error_that_shows_nothing_of_it(keys: Path) -> None:
    block = encrypted(keys, "secret")
    for bad in (block[:40] + "]", block[:-20] + "AAAAAAAAAAAAAAAAAAA]", "ENC[PKCS7,!!!]"):
        try:
            assert decrypt_text(bad, lambda: opened(keys)) == bad  # no block at all
        except BadData as error:
            assert "secret" not in str(error)
            assert bad[12:30] not in str(error)


def test_a_block_for_another_key_is_an_error(keys: Path, tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other",
         "-keyout", str(tmp_path / "private_key.pkcs7.pem"), "-out", str(tmp_path / "public_key.pkcs7.pem")],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    with pytest.raises(BadData, match="another key"):
        decrypt_text(encrypted(keys, "secret"), lambda: opened(tmp_path))


def test_gpg_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="GPG"):
        decrypt_text("x ENC[GPG,AAAA]", lambda: pytest.fail("no key is needed"))


# --- functions ---

PYTHON = """
from language.functions import function


@function("m::lookup", "String key", "Hash options", "Puppet::LookupContext context")
def lookup(context, key, options, lookup_context):
    working = lookup_context.behind
    if key != "m::k":
        return working.not_found()
    working.explain(lambda: "asked")
    return {"value": working.interpolate("%{facts.kernel}"), "of": working.module_name, "option": options["o"]}
"""


def test_a_backend_can_be_written_in_python() -> None:
    files = {
        "modules/m/hiera.yaml": "version: 5\nhierarchy:\n  - {name: p, lookup_key: 'm::lookup', options: {o: 1}}\n",
        "modules/m/lib/puppet/functions/m/lookup.py": PYTHON,
    }
    result = compiled("notice(lookup('m::k'), lookup('m::x', undef, undef, 'none'))", files, facts={"kernel": "Linux"})
    assert result.notices == ["{value => Linux, of => m, option => 1} none"]


def test_a_backend_in_ruby_is_named_with_its_file() -> None:
    files = {
        "modules/m/hiera.yaml": "version: 5\nhierarchy:\n  - {name: p, lookup_key: 'm::lookup'}\n",
        "modules/m/lib/puppet/functions/m/lookup.rb": "Puppet::Functions.create_function(:'m::lookup')",
    }
    with pytest.raises(CompileError, match=r"m::lookup' is written in Ruby \(/env/modules/m/lib/puppet/functions/m/lookup\.rb\)"):
        compiled("lookup('m::k')", files)


def test_a_backend_of_version_3_in_ruby_is_refused_with_what_to_use() -> None:
    files = {"global/hiera.yaml": "version: 5\nhierarchy:\n  - {name: p, hiera3_backend: mongodb}\n"}
    with pytest.raises(CompileError, match=r"The backend 'mongodb' is written in Ruby.*hiera\.yaml") as caught:
        compiled("lookup('k')", files, settings={"hiera_config": "/env/global/hiera.yaml"})
    assert "lookup_key" in caught.value.hint


def test_data_binding_terminus_none_leaves_the_global_layer_out() -> None:
    files = {
        "global/hiera.yaml": "version: 5\n",
        "global/data/common.yaml": "k: global\n",
        "hiera.yaml": "version: 5\n",
        "data/common.yaml": "k: environment\n",
    }
    settings = {"hiera_config": "/env/global/hiera.yaml"}
    assert compiled("notice(lookup('k'))", files, settings=settings).notices == ["global"]
    assert compiled("notice(lookup('k'))", files, settings={**settings, "data_binding_terminus": "none"}).notices == ["environment"]


def test_levels_follow_variables_that_change_during_a_compile() -> None:
    files = {
        "hiera.yaml": "version: 5\nhierarchy:\n  - {name: v, path: '%{role}.yaml'}\n",
        "data/top.yaml": "k: top\n",
        "data/inner.yaml": "k: inner\n",
    }
    manifest = "class c { $role = 'inner' notice(lookup('k')) }\nnotice(lookup('k'))\ninclude c\nnotice(lookup('k'))"
    assert compiled(manifest, files, facts={"role": "top"}).notices == ["top", "inner", "top"]


def test_changed_data_is_seen_by_the_next_compile_and_the_environment_stays_loaded(tmp_path: Path) -> None:
    from environments.directories import EnvironmentSettings
    from environments.loaded import LoadedEnvironments
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import begin, compile_node
    from language.host import NodeInput

    root = tmp_path / "production"
    (root / "data").mkdir(parents=True)
    (root / "manifests").mkdir()
    (root / "manifests" / "site.pp").write_text("notice(lookup('k'))")
    (root / "hiera.yaml").write_text("version: 5\nhierarchy: [{name: n, path: n.yaml}, {name: c, path: common.yaml}]\n")
    (root / "data" / "common.yaml").write_text("k: before\n")
    environments = LoadedEnvironments(EnvironmentSettings((str(tmp_path),)), CodeCache(), log=lambda level, finding: None)

    def noticed() -> tuple[Any, list[str]]:
        loaded = environments.get("production")
        logs: list[Any] = []
        compile_node(begin(loaded.host, loaded.loader, NodeInput("n"), logs.append))
        return loaded, [entry.message for entry in logs]

    first, before = noticed()
    (root / "data" / "common.yaml").write_text("k: changed\n")
    second, after = noticed()
    (root / "data" / "n.yaml").write_text("k: of the node\n")
    third, added = noticed()
    assert (before, after, added) == (["before"], ["changed"], ["of the node"])
    assert first is second is third


# --- locations that are folders ---

# Back ends that answer with the path that they get: what Puppet 7.23 hands to them.
IN_FOLDERS = {
    "modules/m/functions/at.pp": "function m::at(String $key, Hash $options, Puppet::LookupContext $context) {\n"
    "  if $key == 'k' { $options['path'] } else { $context.not_found }\n}\n",
    "modules/m/functions/dig.pp": "function m::dig(Array $keys, Hash $options, Puppet::LookupContext $context) {\n"
    "  if $keys[0] == 'k' { $options['path'] } else { $context.not_found }\n}\n",
    "modules/m/functions/all.pp": "function m::all(Hash $options, Puppet::LookupContext $context) { { 'k' => $options['path'] } }\n",
    "data/common/web.yaml": "x: 1\n",
    "data/clear.yaml": "y: 1\n",
}


@pytest.mark.parametrize(
    ("level", "value"),
    [
        ("lookup_key: m::at, path: common", "/env/data/common"),
        ("lookup_key: m::at, paths: [none, common]", "/env/data/common"),
        ('lookup_key: m::at, mapped_paths: [names, name, "%{name}"]', "/env/data/common"),
        ("data_dig: m::dig, path: common", "/env/data/common"),
        ("data_hash: m::all, path: common", "/env/data/common"),
        ("data_hash: m::all, path: ./", "/env/data"),
        ('lookup_key: m::at, glob: "c*"', "/env/data/clear.yaml"),
        ('lookup_key: m::at, globs: ["com*"]', "none"),
        ("lookup_key: m::at, path: none", "none"),
    ],
)
def test_the_path_of_a_level_may_be_a_folder_but_a_glob_finds_files_only(level: str, value: str) -> None:
    files = IN_FOLDERS | {"hiera.yaml": f"version: 5\nhierarchy:\n- {{name: c, {level}}}\n"}
    assert compiled("notice(lookup('k', {default_value => 'none'}))", files, facts={"names": ["common", "none"]}).notices == [value]


@pytest.mark.parametrize("function", ["yaml_data", "json_data", "hocon_data"])
def test_a_level_of_files_whose_path_is_a_folder_is_refused(function: str) -> None:
    files = IN_FOLDERS | {"hiera.yaml": f"version: 5\nhierarchy:\n- {{name: c, data_hash: {function}, path: common}}\n"}
    with pytest.raises(CompileError, match="Is a directory @ io_fread - /env/data/common"):
        compiled("notice(lookup('k', {default_value => 'none'}))", files)
